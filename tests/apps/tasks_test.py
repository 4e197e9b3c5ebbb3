"""All five task programs on tiny data, as a user runs them: SCRIPT FOLDER-OF-PROGRAMS VALIDATOR SCHEMA.

Data is compared with tests/reference/read_data.py, which reads it once more in plain Python.
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import task_data

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "reference"))
import read_data  # noqa: E402

PROGRAMS, VALIDATOR, SCHEMA = (pathlib.Path(argument) for argument in sys.argv[1:4])
TASKS = tuple(task_data.WRITERS)
ATTENTIONS = ("softmax", "polynomial")
PICTURES = ("image", "pathfinder")
# A model that takes milliseconds a step.
TINY = ("--dim", "16", "--hidden", "16", "--batch-size", "4", "--steps", "2", "--progress", "none")
TINY_LRA = TINY + ("--heads", "2", "--layers", "1", "--set", "qkv_dim=16")


class TasksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="lra-tasks-"))
        cls.data = {task: write(cls.folder / "data" / task) for task, write in task_data.WRITERS.items()}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def run_program(self, task, *options, expect=0, env=None):
        done = subprocess.run([PROGRAMS / f"lra-{task}", *map(str, options)], capture_output=True, text=True,
                              timeout=300, cwd=self.folder, env=env)
        self.assertEqual(done.returncode, expect, f"{task} {options}\n{done.stdout}\n{done.stderr}")
        return done

    def train(self, task, name, *options, data=None, tiny=TINY):
        """The record of a run of two steps, after it was found to fit the schema."""
        out = self.folder / "runs" / f"{self._testMethodName}-{task}-{name}"
        self.run_program(task, "--data", data or self.data[task], "--out", out, *tiny, *options)
        return out, self.record(out)

    def record(self, out):
        done = subprocess.run([VALIDATOR, SCHEMA, out / "result.json"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads((out / "result.json").read_text())

    def test_bfloat16(self):
        flags = pathlib.Path("/proc/cpuinfo").read_text()
        if "avx512_bf16" not in flags:
            # Before any data is looked for.
            done = self.run_program("text", "--data", self.folder / "none", "--precision", "bfloat16", *TINY, expect=1)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn("--precision float32", done.stderr)
            return
        for task in ("text", "retrieval"):
            out, record = self.train(task, "bfloat16", "--precision", "bfloat16")
            _, exact = self.train(task, "float32")
            self.assertEqual(record["environment"]["precision"], "bfloat16")
            losses = [r["metrics"]["last"]["test_loss"] for r in (record, exact)]
            self.assertNotEqual(*losses)
            self.assertAlmostEqual(*losses, delta=0.02)
            # The checkpoint is float32, and is evaluated in either.
            for precision in ("float32", "bfloat16"):
                self.run_program(task, "--data", self.data[task], "--evaluate", out / "checkpoint-last.safetensors",
                                 "--precision", precision, "--out", out / precision, "--progress", "none")
                self.assertEqual(self.record(out / precision)["environment"]["precision"], precision)
        done = self.run_program("text", "--data", self.data["text"], "--precision", "half", *TINY, expect=2)
        self.assertIn("float32, bfloat16", done.stderr)

    def assert_data(self, record, task, path=None, **options):
        """Counts and hashes of the record are those of the Python reader."""
        for split, rows in read_data.read(task, path or self.data[task], **options).items():
            count, digest = read_data.summary(rows)
            with self.subTest(task=task, split=split, **options):
                self.assertGreater(count, 0)
                self.assertEqual(record["data"]["splits"][split]["examples"], count)
                self.assertEqual(record["data"]["splits"][split]["hash"], digest)

    def test_every_task_trains_with_every_kind_of_attention(self):
        for task in TASKS:
            for attention in ATTENTIONS:
                with self.subTest(task=task, attention=attention):
                    _, record = self.train(task, attention[:4], "--attention", attention)
                    self.assertEqual((record["status"], record["task"]["name"]), ("completed", task))
                    self.assertEqual(record["attention"]["spec"], attention)
                    self.assertEqual(record["metrics"]["best"]["test_examples"],
                                     record["data"]["splits"]["test"]["examples"])
                    self.assert_data(record, task)

    def test_every_task_trains_with_the_recipe_lra(self):
        for task in TASKS:
            with self.subTest(task=task):
                options = () if task in PICTURES else ("--max-length", "64")
                _, record = self.train(task, "lra", "--recipe", "lra", *options, tiny=TINY_LRA)
                self.assertEqual(record["status"], "completed")
                self.assertEqual(record["recipe"]["pooling"], "mean" if task == "pathfinder" else "cls-vector")
                self.assertFalse(record["recipe"]["attention_bias"])

    def test_threads_change_nothing(self):
        for task in TASKS:
            digests = set()
            for threads in (1, 3):
                out, _ = self.train(task, threads, "--threads", threads)
                digests.add(hashlib.sha256((out / "checkpoint-last.safetensors").read_bytes()).hexdigest())
            self.assertEqual(len(digests), 1, task)

    def test_evaluation_of_a_checkpoint_repeats_the_result(self):
        for task in TASKS:
            with self.subTest(task=task):
                out, record = self.train(task, "run")
                self.run_program(task, "--data", self.data[task], "--evaluate", out / "checkpoint-best.safetensors",
                                 "--progress", "none")
                again = self.record(out / "evaluate-test")
                for key in ("test_accuracy", "test_loss", "test_confusion"):
                    self.assertEqual(again["metrics"]["last"][key], record["metrics"]["best"][key])
                self.assertEqual((out / "evaluate-test" / "predictions-test.jsonl").read_text(),
                                 (out / "predictions-test.jsonl").read_text())

    def test_pixel_tokens(self):
        for task in PICTURES:
            _, raw = self.train(task, "raw")
            self.assertEqual(raw["recipe"]["pixel_tokens"], "raw")
            _, shifted = self.train(task, "shifted", "--pixel-tokens", "shifted")
            self.assertEqual(shifted["recipe"]["pixel_tokens"], "shifted")
            self.assert_data(shifted, task, pixel_tokens="shifted")

    def test_text_validation_and_length(self):
        _, tenth = self.train("text", "tenth")
        self.assertIn("tenth", tenth["protocol"]["validation"])
        out, test = self.train("text", "test", "--validation", "test")
        self.assertIn("test", test["protocol"]["validation"])
        mark = "validation=test: selected on the test split"
        self.assertIn(mark, self.run_program("text", "--resume", "--out", out).stdout)
        self.assertIn(mark, (out / "log.txt").read_text())
        self.assert_data(test, "text", validation="test")
        _, cut = self.train("text", "cut", "--max-length", "10")
        self.assert_data(cut, "text", max_length=10)
        self.assertGreater(cut["data"]["splits"]["train"]["truncated_share"], 0)

    def test_archives(self):
        for task, suffix in (("text", "aclImdb_v1.tar.gz"), ("image", "cifar-10-binary.tar.gz"),
                             ("retrieval", "aan.tar.gz")):
            (self.folder / "archives" / task).mkdir(parents=True, exist_ok=True)
            archive = task_data.pack(self.data[task], self.folder / "archives" / task / suffix)
            with self.subTest(task=task):
                _, whole = self.train(task, "file", data=archive)
                self.assert_data(whole, task)
                _, above = self.train(task, "folder", data=archive.parent)
                self.assertEqual(above["data"]["splits"], whole["data"]["splits"])

    def test_checkpoints_of_the_nystromformer_code(self):
        # Ours under the names of that code, converted back, is ours again.
        parts = (("encoder.token_embedding", "model.embeddings.word_embeddings"),
                 ("encoder.position_embedding", "model.embeddings.position_embeddings"),
                 ("encoder.blocks.", "model.transformer_"), (".attention.query.", ".mha.W_q."),
                 (".attention.key.", ".mha.W_k."), (".attention.value.", ".mha.W_v."),
                 (".attention.output.", ".mha.ff."), (".attention_norm.", ".norm1."), (".mlp_norm.", ".norm2."),
                 (".mlp_in.", ".mlpblock.0."), (".mlp_out.", ".mlpblock.3."), ("encoder.final_norm", "model.norm"),
                 ("head_in", "seq_classifer.mlpblock.0"), ("head_out", "seq_classifer.mlpblock.2"))
        for task in ("listops", "retrieval", "text"):
            out, _ = self.train(task, "run", "--max-length", "64")
            blob = (out / "checkpoint-best.safetensors").read_bytes()
            size = struct.unpack("<Q", blob[:8])[0]
            tensors, header = json.loads(blob[8:8 + size]), {}
            tensors.pop("__metadata__")
            for name, tensor in tensors.items():
                for here, there in parts:
                    name = name.replace(here, there)
                header[name] = tensor
            text = json.dumps(header).encode()
            theirs, ours = self.folder / f"{task}-theirs.safetensors", self.folder / f"{task}-ours.safetensors"
            theirs.write_bytes(struct.pack("<Q", len(text)) + text + blob[8 + size:])
            command = [PROGRAMS / "lra-data", "convert-checkpoint", theirs, ours, "--task", task]
            subprocess.run(command, check=True, capture_output=True)
            self.run_program(task, "--data", self.data[task], "--evaluate", ours, "--progress", "none", "--out",
                             out / "converted")
            self.assertEqual((out / "converted" / "predictions-test.jsonl").read_text(),
                             (out / "predictions-test.jsonl").read_text())
            guessed = self.folder / f"{task}-guessed.safetensors"
            done = subprocess.run([*command[:3], guessed], capture_output=True, text=True)
            if task == "text":
                self.assertEqual(done.returncode, 2)
                self.assertRegex(done.stderr, "want --task text or --task pathfinder\n$")
                continue
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(guessed.read_bytes(), ours.read_bytes())
            for code, part, line in ((2, "--force", command),
                                     (2, "--attention nystrom", [*command, "--attention", "nystrom", "--force"]),
                                     (2, "--attention linformer", [*command, "--attention", "linformer", "--force"]),
                                     (1, "none of the Nystr", [*command[:2], ours, ours, *command[4:], "--force"]),
                                     (1, "tokens and", [*command[:5], "image", "--force"])):
                done = subprocess.run(line, capture_output=True, text=True)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertIn(part, done.stderr)

    def test_one_root_for_all(self):
        for task in TASKS:
            _, record = self.train(task, "root", data=self.folder / "data")
            self.assert_data(record, task)

    def test_help_gives_every_default(self):
        programs = [[f"lra-{task}"] for task in TASKS] + [["lra-suite"], ["lra-bench"], ["lra-compare"]]
        programs += [["lra-data", *words] for words in (["generate", "listops"], ["generate", "pathfinder"], ["check"],
                                                        ["show"], ["sources"], ["convert-checkpoint"])]
        for program, *words in programs:
            text = subprocess.run([PROGRAMS / program, *words, "--help"], capture_output=True, text=True).stdout
            text = text.split("\nExamples:")[0]
            options = re.split(r"\n(?=  (?:-h, |    )--)", text)[1:]
            self.assertGreaterEqual(len(options), 2, program)
            for option in options:
                words = " ".join(option.split("\n\n")[0].split())
                if not re.match(r"(-h, )?--(help|version) ", words):
                    self.assertRegex(words, r"default: |\(needed\)", program)

    def test_data_is_needed(self):
        for task in ("text", "retrieval", "image"):
            done = self.run_program(task, "--out", self.folder / "none", *TINY, expect=2)
            self.assertRegex(done.stderr.splitlines()[-1], f"^lra-{task}: --data: needed, .*")
            self.assertFalse((self.folder / "none").exists())

    def test_options_of_pathfinder_are_its_own(self):
        done = self.run_program("image", "--data", self.data["image"], "--size", "64", *TINY, expect=2)
        self.assertIn("--size", done.stderr)
        done = self.run_program("pathfinder", "--data", self.data["pathfinder"], "--level", "11", *TINY, expect=2)
        self.assertIn("--level", done.stderr)
        done = self.run_program("pathfinder", "--data", self.data["pathfinder"], "--size", "48", *TINY, expect=2)
        self.assertIn("--size", done.stderr)
        large = task_data.write_pathfinder(self.folder / "large", count=20, side=64)
        _, record = self.train("pathfinder", "64", "--size", "64", data=large)
        self.assertEqual((record["task"]["max_length"], record["task"]["padded_length"]), (4096, 4096))
        self.assert_data(record, "pathfinder", large, max_length=4096)

    def test_evaluation_has_the_data_of_its_run(self):
        large = task_data.write_pathfinder(self.folder / "sizes", count=20, side=64)
        task_data.write_pathfinder(self.folder / "sizes", count=20)
        out, record = self.train("pathfinder", "64", "--size", "64", data=self.folder / "sizes")
        run, file = record["data"], out / "checkpoint-best.safetensors"
        self.assertEqual(run["source"], str(large))
        evaluate = ("--progress", "none", "--evaluate")
        self.run_program("pathfinder", *evaluate, file)
        self.assertEqual(self.record(out / "evaluate-test")["data"]["splits"]["test"]["hash"], run["splits"]["test"]["hash"])
        done = self.run_program("pathfinder", *evaluate, file, "--size", "32", "--force", expect=2)
        self.assertRegex(done.stderr, "^lra-pathfinder: --size: 32 contradicts .*, whose model has pictures of 64 x 64\n$")

        # Of the file alone its length says the size, and nothing the place.
        alone = self.folder / "alone.safetensors"
        shutil.copy(file, alone)
        self.run_program("pathfinder", *evaluate, alone, "--data", self.folder / "sizes", "--out", self.folder / "alone")
        self.assertEqual(self.record(self.folder / "alone")["data"]["source"], str(large))
        self.run_program("pathfinder", *evaluate, alone, "--data", self.folder / "sizes", "--size", "128", "--out",
                         self.folder / "other", expect=2)
        (out / "state.json").write_text("{")
        done = self.run_program("pathfinder", *evaluate, file, "--data", large, "--force")
        self.assertIn("state.json", done.stderr)

        out, _ = self.train("text", "moved", "--validation", "test", data=task_data.write_text(self.folder / "there"))
        self.run_program("text", *evaluate, out / "checkpoint-best.safetensors", "--split", "validation")
        self.assertIn("selection on test", self.record(out / "evaluate-validation")["protocol"]["validation"])
        (self.folder / "there").rename(self.folder / "elsewhere")
        done = self.run_program("text", *evaluate, out / "checkpoint-best.safetensors", expect=1)
        self.assertIn("there", done.stderr)
        self.assertIn("--data PATH names another place", done.stderr)

    def test_evaluation_has_the_generated_set_of_its_run(self):
        out, _ = self.train("pathfinder", "run")
        state = json.loads((out / "state.json").read_text())
        # As the recipe quick has it, but of 40 pictures.
        state["state"]["settings"].update(data=None, generated=40, level="9")
        (out / "state.json").write_text(json.dumps(state))
        self.run_program("pathfinder", "--evaluate", out / "checkpoint-best.safetensors", "--progress", "none",
                         env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")})
        data = self.record(out / "evaluate-test")["data"]
        self.assertEqual((data["source"], data["splits"]["test"]["examples"]),
                         ("generated: size 32, level 9, seed 0, 40", 4))


if __name__ == "__main__":
    sys.argv = sys.argv[:1] + ["-v"] + sys.argv[4:]
    unittest.main()
