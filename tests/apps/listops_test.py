"""lra-listops as a user runs it: help, training, results, evaluation, and every wrong input with its exit code."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import unittest

import listops_support as support
from listops_support import ListopsTest, TINY, comparable, lines_of, sha
from task_data import write_listops


def rewrite_tensor_shape(source, target):
    """A checkpoint whose first 2-D tensor has its dimensions swapped."""
    blob = source.read_bytes()
    size = struct.unpack("<Q", blob[:8])[0]
    header = json.loads(blob[8:8 + size])
    name = next(n for n in sorted(header) if n != "__metadata__" and len(header[n]["shape"]) == 2
                and header[n]["shape"][0] != header[n]["shape"][1])
    header[name]["shape"].reverse()
    text = json.dumps(header, separators=(",", ":")).encode()
    target.write_bytes(struct.pack("<Q", len(text)) + text + blob[8 + size:])
    return name


class Basics(ListopsTest):
    def test_help_version_and_list(self):
        help_text = self.run_program("--help", data=False).stdout
        for option in ("--data", "--attention", "--resume", "--evaluate", "--set", "--max-time", "--threads"):
            self.assertIn(option, help_text)
        self.assertTrue(help_text.rstrip().splitlines()[-1].strip().startswith("lra-listops"), "ends with examples")
        self.assertLessEqual(max(len(line) for line in help_text.splitlines()), 110)
        version = self.run_program("--version", data=False).stdout
        self.assertIn("oneDNN", version)
        listed = self.run_program("--attention", "list", data=False).stdout
        self.assertIn("softmax", listed)
        self.assertIn("polynomial", listed)

    def test_a_run_leaves_all_files_and_a_valid_record(self):
        done = self.train("--steps", "20", "--warmup", "4", "--eval-every", "5", "--log-every", "10",
                          "--attention", "polynomial:power=2,scale=sqrt")
        out = self.out()
        self.assertEqual(sorted(p.name for p in out.iterdir() if p.name != ".lock"),
                         ["checkpoint-best.safetensors", "checkpoint-last.safetensors", "log.txt", "metrics.jsonl",
                          "optimizer-last.safetensors", "predictions-test.jsonl", "result.json", "state.json"])
        self.assertIn(str(out / "result.json"), done.stdout)
        record = self.record(out)
        self.assertEqual(record["status"], "completed")
        self.assertEqual(record["attention"]["spec"], "polynomial:power=2,scale=sqrt")
        # Weights are dropped in training, never in evaluation.
        self.assertEqual(record["attention"]["form"]["train"], "quadratic")
        self.assertRegex(record["attention"]["form"]["evaluate"], r"^linear above \d+ tokens$")
        self.assertTrue(record["attention"]["attention_dropout_applies"])
        self.assertEqual([h["step"] for h in record["history"]], [5, 10, 15, 20])
        self.assertEqual(record["data"]["splits"]["train"]["examples"], 40)
        best = max(record["history"], key=lambda h: (h["accuracy"], -h["step"]))
        self.assertEqual(record["metrics"]["best"]["step"], best["step"])
        self.assertEqual(record["metrics"]["last"]["step"], 20)
        metrics = lines_of(out / "metrics.jsonl")
        self.assertEqual([m["step"] for m in metrics if m["split"] == "train"], [1, 10, 20])
        self.assertEqual(list(metrics[0]), ["split", "step", "loss", "accuracy", "learning_rate", "gradient_norm",
                                            "samples_per_second"])
        tests = [m for m in metrics if m["split"] == "test"]
        self.assertEqual([t["step"] for t in tests], sorted({best["step"], 20}, key=lambda s: s == 20))
        predictions = lines_of(out / "predictions-test.jsonl")
        self.assertEqual([p["index"] for p in predictions], list(range(30)))
        right = sum(p["label"] == p["predicted"] for p in predictions)
        self.assertAlmostEqual(right / 30, record["metrics"]["best"]["test_accuracy"])
        confusion = record["metrics"]["best"]["test_confusion"]
        self.assertEqual(sum(map(sum, confusion)), 30)
        self.assertEqual(sum(confusion[i][i] for i in range(10)), right)
        state = json.loads((out / "state.json").read_text())
        self.assertEqual(set(state["files"]), {"checkpoint-best.safetensors", "checkpoint-last.safetensors",
                                               "optimizer-last.safetensors"})

    def test_checkpoint_is_the_same_for_any_threads(self):
        options = ["--steps", "12", "--warmup", "3", "--eval-every", "4", "--seed", "5"]
        for threads in (1, 2, 5):
            self.train(*options, "--threads", threads, out=self.out(f"threads-{threads}"))
        for threads in (2, 5):
            self.assert_same_run(self.out("threads-1"), self.out(f"threads-{threads}"))
        self.assertNotIn(b"/", self.out("threads-1").joinpath("checkpoint-last.safetensors").read_bytes()[:200])

    def test_accuracy_is_the_same_for_any_evaluation_batch(self):
        results = []
        for batch in (1, 7, 100):
            out = self.out(f"eval-batch-{batch}")
            self.train("--steps", "6", "--warmup", "2", "--eval-every", "3", "--eval-batch-size", batch, out=out)
            record = self.record(out)
            results.append((record["metrics"], record["history"], sha(out / "predictions-test.jsonl")))
        self.assertEqual(results[0], results[1])
        self.assertEqual(results[0], results[2])

    def test_a_linear_form_drops_no_weights_and_says_so(self):
        options = ["--steps", "6", "--warmup", "2", "--eval-every", "3", "--set", "attention-dropout=0.5", "--attention",
                   "polynomial:power=2,scale=n,form=linear"]
        for threads in (1, 2):
            self.train(*options, "--threads", threads, out=self.out(f"linear-{threads}"))
        attention = self.record(self.out("linear-1"))["attention"]
        self.assertEqual(attention["form"], {"train": "linear", "evaluate": "linear"})
        self.assertFalse(attention["attention_dropout_applies"])
        self.assert_same_run(self.out("linear-1"), self.out("linear-2"))
        self.train(*options, "--set", "attention-dropout=0", out=self.out("linear-0"))
        self.assertEqual(sha(self.out("linear-0") / "predictions-test.jsonl"),
                         sha(self.out("linear-1") / "predictions-test.jsonl"))
        self.assertEqual(comparable(self.out("linear-0") / "metrics.jsonl"),
                         comparable(self.out("linear-1") / "metrics.jsonl"))

    def test_limits_are_kept_and_recorded(self):
        self.train("--steps", "3", "--warmup", "1", "--limit-train", "8", "--limit-eval", "5", "--eval-examples", "3",
                   "--set", "test-examples=4")
        record = self.record(self.out())
        self.assertEqual(record["data"]["splits"]["train"]["limited_to"], 8)
        self.assertEqual(record["data"]["splits"]["train"]["examples"], 8)
        self.assertEqual(record["data"]["splits"]["test"]["examples"], 5)
        self.assertEqual(record["history"][0]["examples"], 3)
        self.assertEqual(record["metrics"]["last"]["test_examples"], 4)
        self.assertEqual(record["recipe"]["eval_examples"], 3)

    def test_steps_alone_say_what_they_scale(self):
        done = self.train("--steps", "10")
        self.assertIn("warm-up 2, evaluation every 1 steps", done.stderr)
        record = self.record(self.out())
        self.assertEqual((record["recipe"]["warmup"], record["recipe"]["eval_every"]), (2, 1))

    def test_init_starts_from_a_file(self):
        self.train("--steps", "4", "--warmup", "2", out=self.out("init-a"))
        weights = self.out("init-a") / "checkpoint-last.safetensors"
        options = ["--steps", "1", "--learning-rate", "0", "--seed", "9"]
        self.train(*options, "--init", weights, out=self.out("init-b"))
        self.assertEqual(sha(self.out("init-b") / "checkpoint-last.safetensors"), sha(weights))

    def test_quick_recipe_file_and_default_folder(self):
        (self.folder / "mine.json").write_text('{"base": "quick", "steps": 3, "warmup": 1, "dim": 16, "hidden": 16}')
        self.run_program("--recipe", "mine.json", "--progress", "none")
        record = self.record(self.folder / "runs/listops/mine/softmax/seed-0")
        self.assertEqual(record["recipe"]["name"], "mine")

    def test_plain_progress_shows_training_and_left_time(self):
        done = self.train("--steps", "6", "--warmup", "2", "--log-every", "2", "--progress", "plain")
        self.assertIn("train 4/6", done.stderr)
        self.assertIn("samples/s", done.stderr)
        log = (self.out() / "log.txt").read_text()
        for line in done.stderr.splitlines():
            self.assertIn(line, log)


class Evaluate(ListopsTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.run_folder = cls.folder / "trained"
        subprocess.run([support.PROGRAM, "--data", str(cls.data), *TINY, "--steps", "8", "--warmup", "2", "--out",
                        str(cls.run_folder), "--progress", "none", "--attention", "polynomial"], check=True,
                       capture_output=True)
        cls.file = cls.run_folder / "checkpoint-best.safetensors"

    def test_test_split_gives_the_run_s_own_result(self):
        self.run_program("--evaluate", self.file)
        out = self.run_folder / "evaluate-test"
        record, trained = self.record(out), self.record(self.run_folder)
        self.assertEqual(record["metrics"]["last"]["test_accuracy"], trained["metrics"]["best"]["test_accuracy"])
        self.assertEqual(record["metrics"]["last"]["test_loss"], trained["metrics"]["best"]["test_loss"])
        self.assertEqual(sha(out / "predictions-test.jsonl"), sha(self.run_folder / "predictions-test.jsonl"))
        self.assertIsNone(record["seed"])
        self.assertEqual(record["recipe"]["dim"], 16)
        self.refused(2, "--evaluate", self.file, names=["--force"])
        self.run_program("--evaluate", self.file, "--force")

    def test_other_splits(self):
        done = self.run_program("--evaluate", self.file, "--split", "validation", "--out", self.out())
        record, trained = self.record(self.out()), self.record(self.run_folder)
        self.assertEqual(record["metrics"]["last"]["validation_accuracy"],
                         trained["metrics"]["best"]["validation_accuracy"])
        self.assertIn("validation", done.stdout)
        self.run_program("--evaluate", self.file, "--split", "train", "--out", self.out("train-split"))
        self.assertEqual(self.record(self.out("train-split"))["history"][0]["examples"], 40)

    def test_contradictions_are_refused(self):
        self.refused(2, "--evaluate", self.file, "--attention", "softmax", names=["softmax", "polynomial"])
        self.refused(2, "--evaluate", self.file, "--dim", "32", names=["--dim", "16"])
        self.refused(2, "--evaluate", self.file, "--steps", "5", names=["--steps"])
        self.refused(2, "--evaluate", self.file, "--seed", "5", names=["--seed"])
        self.refused(2, "--evaluate", self.file, "--resume", names=["--resume"])
        self.run_program("--evaluate", self.file, "--attention", "polynomial:power=3", "--dim", "16", "--out",
                         self.out())

    def test_damaged_files(self):
        cut = self.folder / "cut.safetensors"
        cut.write_bytes(self.file.read_bytes()[:-100])
        self.refused(1, "--evaluate", cut, names=[cut])
        cut.write_bytes(self.file.read_bytes()[:100])
        self.refused(1, "--evaluate", cut, names=[cut])
        cut.write_bytes(b"")
        self.refused(1, "--evaluate", cut, names=[cut])
        name = rewrite_tensor_shape(self.file, cut)
        self.refused(1, "--evaluate", cut, names=[cut, name])
        self.refused(1, "--evaluate", self.folder / "none.safetensors", names=["none.safetensors"])


class WrongInput(ListopsTest):
    def test_command_line(self):
        for names, *options in [
            (["softmix"], "--attention", "softmix"),
            (["pwr"], "--attention", "polynomial:pwr=2"),
            (["power"], "--attention", "polynomial:power=0"),
            (["form=linear", "power=3"], "--attention", "polynomial:power=3,form=linear"),
            (["scale"], "--attention", "polynomial:scale=0"),
            (["heads"], "--heads", "3"),
            (["--steps"], "--steps", "0"),
            (["warmup", "50"], "--steps", "50", "--warmup", "50"),
            (["warmup"], "--warmup", "5000"),
            (["--set", "stepz", "steps"], "--set", "stepz=3"),
            (["recipe", "quickly"], "--recipe", "quickly"),
            (["--maps"], "--maps", "-3"),
            (["--precision", "half", "float32, bfloat16"], "--precision", "half"),
            (["--precision", "tf32", "--backend cuda"], "--precision", "tf32"),
            (["--split"], "--split", "train"),
            (["--resume", "--force"], "--resume", "--force"),
            (["--backend"], "--backend", "tpu"),
            (["--max-time"], "--max-time", "soon"),
            (["validation"], "--validation", "test"),
            (["dropout"], "--dropout", "1"),
            (["stray"], "stray"),
            (["--steps"], "--steps"),
        ]:
            with self.subTest(options):
                self.refused(2, *options, names=names)
                self.assertFalse((self.folder / "runs").exists(), "nothing was written")

    def test_backend_cuda_is_not_there(self):
        self.refused(1, "--backend", "cuda", names=["cuda"])
        self.assertFalse((self.folder / "runs").exists())

    def test_missing_data(self):
        self.refused(1, "--data", self.folder / "nowhere", "--out", self.out(), names=["nowhere"], data=False)
        self.assertFalse(self.out().exists())

    def test_bad_rows(self):
        bad = write_listops(self.folder / "bad")
        with open(bad / "basic_train.tsv", "ab") as file:
            file.write(b"( ( [MAX 1 ) 2 ] )\t3\r\n")
        message = self.refused(1, "--data", bad, "--strict", "--out", self.out(), *TINY, data=False,
                               names=["basic_train.tsv:42"])
        self.assertIn("3", message)
        done = self.run_program("--data", bad, "--out", self.out("skipped"), *TINY, "--steps", "2", data=False)
        self.assertIn("1 bad rows skipped", done.stderr)
        skipped = self.record(self.out("skipped"))["data"]["splits"]["train"]["skipped"]
        self.assertEqual([(s["count"], s["first"]) for s in skipped], [(1, "basic_train.tsv:42")])
        for name in ("train", "val", "test"):
            (bad / f"basic_{name}.tsv").write_text("Source\tTarget\nx\t1\n")
        self.refused(1, "--data", bad, "--out", self.out("none"), *TINY, data=False, names=["basic_train.tsv"])

    def test_init_of_another_shape_or_cut(self):
        self.train("--steps", "1", out=self.out("weights"))
        file = self.out("weights") / "checkpoint-last.safetensors"
        wrong = self.folder / "wrong.safetensors"
        name = rewrite_tensor_shape(file, wrong)
        self.refused(1, *TINY, "--init", wrong, "--out", self.out(), names=[wrong, name])
        wrong.write_bytes(file.read_bytes()[:-4])
        self.refused(1, *TINY, "--init", wrong, "--out", self.out(), names=[wrong])
        self.refused(1, "--init", file, "--out", self.out(), names=[file])
        self.assertFalse((self.out() / "result.json").exists())
        self.train("--steps", "1", "--init", file)

    def test_occupied_folder(self):
        self.train("--steps", "2")
        before = sha(self.out() / "result.json")
        self.refused(2, *TINY, "--steps", "2", "--out", self.out(), names=[self.out(), "--resume", "--force"])
        self.refused(1, "--data", "nowhere", "--force", "--out", self.out(), data=False)
        self.assertEqual(sha(self.out() / "result.json"), before, "a run that can't start costs nothing")
        self.train("--steps", "3", "--force")
        self.assertEqual(self.record(self.out())["recipe"]["steps"], 3)

    def test_settings_that_differ_on_resume(self):
        self.train("--steps", "2")
        for names, *options in [(["--seed", "1"], "--seed", "1"), (["--steps", "3"], "--steps", "3"),
                                (["--attention"], "--attention", "polynomial"), (["--recipe"], "--recipe", "lra"),
                                (["--limit-train"], "--limit-train", "3")]:
            self.refused(2, "--resume", "--out", self.out(), *options, names=names)
        self.refused(2, "--resume", "--data", self.folder, "--out", self.out(), names=["--data"], data=False)

    def test_diverged_run(self):
        self.train("--steps", "1", out=self.out("finite-weights"))
        file = self.out("finite-weights") / "checkpoint-last.safetensors"
        blob = bytearray(file.read_bytes())
        blob[-4:] = struct.pack("<f", float("inf"))
        file.write_bytes(blob)
        done = self.train("--steps", "5", "--init", file, expect=1)
        record = self.record(self.out())
        self.assertEqual(record["status"], "diverged")
        self.assertIn("diverged at step 1: ", record["error"])
        self.assertIn("diverged at step 1: ", done.stderr.splitlines()[-1])
        self.assertIsNone(lines_of(self.out() / "metrics.jsonl")[0]["loss"])
        self.run_program("--resume", "--out", self.out(), expect=1)

    def test_folder_without_write_permission(self):
        locked = self.folder / "locked"
        locked.mkdir()
        locked.chmod(0o555)
        user = {}
        if os.geteuid() == 0:  # permissions do not hold for root
            user = {"user": 65534}
            # The program may lie where only root gets to, as in root's home.
            self.addCleanup(setattr, support, "PROGRAM", support.PROGRAM)
            support.PROGRAM = shutil.copy(support.PROGRAM, self.folder)
            for path in [self.folder, self.data, *self.data.iterdir()]:
                path.chmod(0o755)
        self.refused(1, *TINY, "--out", locked / "run", names=[locked, "ermission denied"], **user)
        self.refused(1, *TINY, "--out", locked, names=[locked, "ermission denied"], **user)

    def test_full_disk(self):
        if os.geteuid() != 0:
            self.skipTest("mounting a small file system needs root")
        small = self.folder / "small"
        small.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(small)], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("can't mount: " + mounted.stderr.decode())
        try:
            options = [*TINY, "--set", "max_length=64", "--checkpoint-every", "0", "--steps", "40", "--warmup", "2"]
            filler = small / "filler"
            free = os.statvfs(small)
            # Nothing fits: the run can't start.
            filler.write_bytes(b"x" * (free.f_bavail * free.f_frsize - 4096))
            self.refused(1, *options, "--out", small / "run", names=["No space left"])
            # The first checkpoints fit, then the disk fills up.
            filler.unlink()
            self.run_program(*options, "--out", small / "run", "--max-time", "0.5s", "--force", "--eval-every", "0",
                             "--set", "steps=100000", expect=130)
            state = json.loads((small / "run/state.json").read_text())["state"]
            free = os.statvfs(small)
            filler.write_bytes(b"x" * (free.f_bavail * free.f_frsize))
            self.refused(1, "--resume", "--out", small / "run", names=["No space left"])
            again = json.loads((small / "run/state.json").read_text())["state"]
            self.assertEqual(state["step"], again["step"])
            # With room again it goes on.
            filler.unlink()
            self.run_program("--resume", "--out", small / "run", "--max-time", "0.5s", expect=130)
            self.assertGreater(json.loads((small / "run/state.json").read_text())["state"]["step"], state["step"])
        finally:
            subprocess.run(["umount", str(small)], check=True)


if __name__ == "__main__":
    support.main()
