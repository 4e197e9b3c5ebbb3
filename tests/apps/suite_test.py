"""lra-suite on tiny data, as a user runs it: SCRIPT FOLDER-OF-PROGRAMS VALIDATOR SCHEMA."""
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import processes
import task_data

PROGRAMS, VALIDATOR, SCHEMA = (pathlib.Path(argument) for argument in sys.argv[1:4])
SUITE = PROGRAMS / "lra-suite"
# A model that takes milliseconds a step.
TINY = ("--dim", "16", "--hidden", "16", "--batch-size", "4", "--progress", "plain")
GRID = ("--attention", "softmax", "--attention", "polynomial:power=1,scale=16", "--seeds", "0-1")


class SuiteTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="lra-suite-"))
        cls.data = cls.folder / "data"
        for task, write in task_data.WRITERS.items():
            write(cls.data / task)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def command(self, *options, data=True):
        words = [str(SUITE), *map(str, options), *TINY]
        return words + (["--data", str(self.data)] if data else [])

    def suite(self, *options, expect=0, data=True, **popen):
        done = subprocess.run(self.command(*options, "--out", self.out(), data=data), capture_output=True, text=True,
                              timeout=300, cwd=self.folder, **popen)
        self.assertEqual(done.returncode, expect, f"{options}\n{done.stdout}\n{done.stderr}")
        return done

    def refused(self, *options, names=(), expect=2, data=True):
        done = self.suite(*options, expect=expect, data=data)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for name in names:
            self.assertIn(str(name), done.stderr)
        return done

    def out(self):
        return self.folder / self._testMethodName

    def record(self, folder):
        done = subprocess.run([VALIDATOR, SCHEMA, folder / "result.json"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads((folder / "result.json").read_text())

    def records(self):
        return {str(path.parent.relative_to(self.out())): self.record(path.parent)
                for path in self.out().rglob("result.json")}

    def start(self, *options):
        """The suite at work, in a process group of its own."""
        process = subprocess.Popen(self.command(*options, "--out", self.out()), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd=self.folder, start_new_session=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()) if process.poll() is None else None)
        return process

    def wait_for(self, condition, process=None, seconds=60):
        end = time.time() + seconds
        while not condition():
            self.assertLess(time.time(), end, "it did not happen")
            if process is not None and process.poll() is not None:
                self.fail(f"ended with {process.returncode}: {process.communicate()}")
            time.sleep(0.005)

    def test_all_tasks(self):
        done = self.suite("--tasks", "all", *GRID, "--steps", "2", "--jobs", "2", "--threads", "2")
        self.assertIn("5 tasks, 2 attentions, 2 seeds, recipe nystromformer", done.stdout)
        self.assertIn("20 of 20 cells done", done.stdout)
        self.assertEqual(sum(" done " in line for line in done.stderr.splitlines()), 20, done.stderr)
        records = self.records()
        self.assertEqual(len(records), 20)
        for folder, record in records.items():
            self.assertEqual(record["status"], "completed")
            self.assertEqual(record["environment"]["threads"], 1)
            self.assertEqual(folder.split("/")[0], record["task"]["name"])
            self.assertEqual(folder.split("/")[3], f"seed-{record['seed']}")
        # What is done is left alone; a new attention is all that is run.
        times = {path: path.stat().st_mtime_ns for path in self.out().rglob("result.json")}
        done = self.suite("--tasks", "all", *GRID, "--attention", "sigmoid", "--steps", "2", "--threads", "2")
        self.assertIn("30 of 30 cells done", done.stdout)
        self.assertEqual(sum(" done " in line for line in done.stderr.splitlines()), 10, done.stderr)
        self.assertEqual(times, {path: path.stat().st_mtime_ns for path in times})
        # A cell is what its program gives alone, whatever the number of threads.
        alone = self.folder / "alone"
        words = [PROGRAMS / "lra-text", "--data", self.data, "--attention", "softmax", "--seed", "1", "--dim", "16", "--hidden",
                 "16", "--batch-size", "4", "--steps", "2", "--threads", "2", "--out", alone]
        subprocess.run(words, check=True, capture_output=True)
        cell = self.out() / "text/nystromformer/softmax/seed-1"
        for name in ("checkpoint-last.safetensors", "predictions-test.jsonl"):
            self.assertEqual((cell / name).read_bytes(), (alone / name).read_bytes())

    def test_selection_on_test_is_said(self):
        options = ["--tasks", "text", "--attention", "softmax", "--steps", "2", "--dry-run"]
        self.assertIn("text: validation=test: selected on the test split",
                      self.suite(*options, "--validation", "test").stdout)
        self.assertNotIn("selected on", self.suite(*options).stdout)

    def test_plan_and_status(self):
        options = ["--tasks", "listops", *GRID, "--steps", "2"]
        done = self.suite(*options, "--dry-run")
        self.assertIn("4 cells", self.suite(*options, "--status").stdout)
        self.assertEqual(done.stdout.count("to do        about"), 4, done.stdout)
        self.assertFalse(self.out().exists())
        self.suite(*options)
        self.assertEqual(self.suite(*options, "--status").stdout.count(" done "), 4)
        self.assertIn("4 cells: 4 done", self.suite(*options, "--status").stdout)
        self.assertIn("4 of 4 cells done", self.suite(*options).stdout)

    def test_grid_file(self):
        file = self.folder / "mine.json"
        file.write_text(json.dumps({
            "about": "a sweep", "tasks": ["text", "listops"], "attentions": ["softmax"], "seeds": [3],
            "options": {"steps": 2, "norms": True, "clip_norm": 1.5}, "task_options": {"text": {"learning_rate": 0.5}},
            "sweep": {"max-length": [8, 16]}}))
        done = self.suite("--grid", file)
        self.assertIn("mine: 2 tasks, 1 attention, 1 seed, 2 max-lengths", done.stdout)
        records = self.records()
        self.assertEqual(sorted(records), [f"max-length={n}/{task}/nystromformer/softmax/seed-3" for n in (16, 8)
                                           for task in ("listops", "text")])
        for folder, record in records.items():
            self.assertEqual(record["recipe"]["clip_norm"], 1.5)
            self.assertEqual(record["recipe"]["learning_rate"], 0.5 if "text" in folder else 1e-4)
            self.assertEqual(record["recipe"]["max_length"], 8 if "=8/" in folder else 16)
            self.assertTrue((self.out() / folder / "norms.jsonl").exists())
        # Options of the command line come last.
        self.assertIn("8 cells", self.suite("--grid", file, "--seeds", "0-1", "--tasks", "text,image", "--status").stdout)

    def test_which_option_wins(self):
        file = self.folder / "layers.json"
        grid = {"tasks": ["text", "listops"], "attentions": ["softmax"],
                "options": {"steps": 2, "max_length": 8, "set": "init=lra"}, "task_options": {"text": {"max_length": 16}},
                "sweep": {"beta2": [0.9, 0.99]}}
        file.write_text(json.dumps(grid))
        self.suite("--grid", file)
        for folder, record in self.records().items():
            self.assertEqual(record["recipe"]["max_length"], 16 if "/text/" in folder else 8)
            self.assertEqual(record["recipe"]["beta2"], 0.9 if folder.startswith("beta2=0.9/") else 0.99)
            self.assertEqual(record["recipe"]["init"], "lra")
        self.refused("--grid", file, "--set", "beta2=0.5", names=["--beta2", "sweeps"])
        grid["sweep"] = {"max_length": [8, 16]}
        file.write_text(json.dumps(grid))
        self.refused("--grid", file, "--max-length", "12", names=["--max-length", "sweeps"])

    def test_a_cell_that_another_program_runs_is_left_to_it(self):
        out = self.out() / "listops/nystromformer/softmax/seed-0"
        words = [PROGRAMS / "lra-listops", "--data", self.data, "--dim", "16", "--hidden", "16", "--batch-size", "4",
                 "--steps", "100000", "--warmup", "2", "--eval-every", "0", "--out", out]
        other = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.wait_for((out / "state.json").exists, other)
            grid = ("--tasks", "listops", "--attention", "softmax", "--steps", "100000", "--warmup", "2", "--eval-every", "0")
            self.assertIn(" running ", self.suite(*grid, "--status").stdout)
            done = self.suite(*grid)
            self.assertIn("left to the process that runs it", done.stderr)
            self.assertIn("0 of 1 cells done, 1 run by another process", done.stdout)
        finally:
            other.terminate()
            other.wait()
        self.assertEqual(self.record(out)["status"], "interrupted")

    def test_a_damaged_state_fails_its_cell_alone(self):
        self.suite("--tasks", "listops", *GRID, "--steps", "2")
        cell = self.out() / "listops/nystromformer/softmax/seed-0"
        (cell / "result.json").unlink()
        (cell / "state.json").write_text("{")
        done = self.suite("--tasks", "listops", *GRID, "--steps", "2", expect=1)
        self.assertIn("3 of 4 cells done, 1 failed", done.stdout)
        self.assertIn("state.json", done.stderr)

    def test_built_in_grids(self):
        for grid in ("quick-demo", "paper-powers", "paper-scale-sweep"):
            cells = self.suite("--grid", grid, "--status").stdout
            self.assertGreater(cells.count(" to do "), 20, cells)
        cells = self.suite("--grid", "all-variants", "--seeds", "0", "--tasks", "listops", "--status").stdout
        self.assertGreater(cells.count(" to do "), 50, cells)

    def test_refusals(self):
        self.refused(names=["--grid", "--attention"])
        self.refused("--attention", "softmix", names=["softmix"])
        self.refused("--attention", "softmax", "--tasks", "listops,speech", names=["--tasks", "speech"])
        self.refused("--attention", "softmax", "--seeds", "4-1", names=["--seeds", "4-1", "0-4"])
        self.refused("--attention", "softmax", "--stps", "2", names=["listops softmax", "--stps", "mean steps"])
        self.refused("--attention", "softmax", "--heads", "3", names=["listops softmax", "heads", "3"])
        self.refused("--attention", "softmax", "--seed", "3", names=["--seed", "--seeds"])
        self.refused("--attention", "softmax", "--resume", names=["--resume"])
        self.refused("--attention", "softmax", "--jobs", "5000", names=["--jobs"])
        self.refused("--attention", "softmax", "--jobs", "3", "--threads", "2", names=["--jobs 3", "2 threads"])
        self.refused("--attention", "softmax", "--tasks", "text", "--data", "image=/x", names=["--data image=/x", "image"])
        self.refused("--attention", "softmax", "--tasks", "text", data=False, names=["text", "--data", "aclImdb"])
        self.refused("--attention", "softmax", "--tasks", "text", "--data", "text=/nowhere", expect=1,
                     names=["text", "/nowhere"])
        self.refused("--grid", "quick", names=["--grid", "quick-demo"])
        self.refused("--grid", self.folder / "none.json", expect=1, names=["none.json"])
        wrong = {
            '{"tasks": "all"}': "attentions", '{"attentions": ["softmax"]}': "tasks", "[]": "object",
            '{"tasks": "all", "attentions": ["softmix"]}': "softmix", '{"tasks": "al", "attentions": ["softmax"]}': "al",
            '{"tasks": "all", "attentions": ["softmax"], "options": {"stps": 3}}': "steps",
            '{"tasks": "all", "attentions": ["softmax"], "options": {"steps": [3]}}': "steps",
            '{"tasks": "all", "attentions": ["softmax"], "sweep": {"steps": 3}}': "sweep",
            '{"tasks": "all", "attentions": ["softmax"], "seeds": [1.5]}': "seeds",
            '{"tasks": "all", "attentions": ["softmax"], "task_options": {"speech": {}}}': "speech",
            '{"tasks": "all", "attentions": ["softmax"], "seed": 3}': "seed",
        }
        for i, (text, name) in enumerate(wrong.items()):
            file = self.folder / f"wrong{i}.json"
            file.write_text(text)
            self.refused("--grid", file, names=[file, name])
        broken = self.folder / "broken.json"
        broken.write_text('{"tasks": ')
        self.refused("--grid", broken, expect=1, names=[broken])
        self.assertFalse(self.out().exists())

    def test_other_settings_are_refused(self):
        self.suite("--tasks", "listops", "--attention", "softmax", "--steps", "2")
        self.refused("--tasks", "listops", "--attention", "softmax", "--steps", "3",
                     names=["listops softmax seed 0", "steps", "3 here", "2 there"])
        # What is not given counts, too: the recipe has 5,000 steps.
        self.refused("--tasks", "listops", "--attention", "softmax", names=["steps", "5000 here", "2 there"])
        self.refused("--tasks", "listops", "--attention", "softmax", "--steps", "2", "--limit-eval", "5",
                     names=["limit_eval", "5 here", "0 there"])

    def test_failed_cells_are_reported_and_tried_again(self):
        # A file where a cell's folder belongs.
        blocked = self.out() / "listops/nystromformer/softmax/seed-0"
        blocked.parent.mkdir(parents=True)
        blocked.write_text("in the way")
        options = ["--tasks", "listops", *GRID, "--steps", "2"]
        done = self.suite(*options, expect=1)
        self.assertIn("3 of 4 cells done, 1 failed", done.stdout)
        failures = [line for line in done.stderr.splitlines() if line.startswith("lra-suite: ")]
        self.assertEqual(len(failures), 1, done.stderr)
        self.assertIn("listops softmax seed 0: ", failures[0])
        self.assertIn(str(blocked), failures[0])
        blocked.unlink()
        self.assertIn("4 of 4 cells done", self.suite(*options).stdout)

    def test_data_that_is_bad_fails_its_cells(self):
        data = self.folder / "bad-data"
        task_data.write_listops(data)
        (data / "basic_train.tsv").write_text("Source\tTarget\n( [MAX 1 2 ] )\t7\n")
        options = ["--tasks", "listops,text", "--attention", "softmax", "--steps", "2", "--data", f"listops={data}"]
        done = self.suite(*options, expect=1)
        self.assertIn("1 of 2 cells done, 1 failed", done.stdout)
        # The record of a run that never began says so, and does not stand in the way.
        record = self.record(self.out() / "listops/nystromformer/softmax/seed-0")
        self.assertEqual(record["status"], "failed")
        self.assertIn("not one good training row", record["error"])
        self.assertIn("failed", self.suite(*options, "--status").stdout)
        # Nor is it taken for anything else by the comparison.
        compared = subprocess.run([PROGRAMS / "lra-compare", self.out()], capture_output=True, text=True, timeout=120)
        self.assertEqual((compared.returncode, compared.stderr), (0, ""))
        self.assertIn("softmax: in no mean: seed 0 failed", compared.stdout)
        task_data.write_listops(data)
        self.assertIn("2 of 2 cells done", self.suite(*options).stdout)
        again = self.record(self.out() / "listops/nystromformer/softmax/seed-0")
        self.assertEqual((again["status"], again["protocol"]), ("completed", record["protocol"]))

    def test_a_root_without_data_that_can_be_generated(self):
        root, options = self.folder / "texts", ["--attention", "softmax", "--steps", "2", "--dry-run", "--data"]
        task_data.write_text(root)
        done = self.suite("--tasks", "listops,text,pathfinder", *options, root, data=False)
        for task in ("listops", "pathfinder"):
            self.assertIn(f"  {task}: no data of it under {root}: it is generated\n", done.stdout)
        self.refused("--tasks", "image", *options, root, names=[root], expect=1, data=False)
        # What is there in part, or of another size, or named for the task, is not passed over.
        self.refused("--tasks", "listops", *options, f"listops={root}", names=[root], expect=1, data=False)
        self.refused("--tasks", "listops", *options, self.folder / "none", names=["none"], expect=1, data=False)
        (root / "basic_val.tsv").write_text("")
        self.refused("--tasks", "listops", *options, root, names=["basic_train.tsv"], expect=1, data=False)
        self.assertNotIn("is generated", self.suite("--tasks", "pathfinder", *options, self.data, data=False).stdout)
        self.refused("--tasks", "pathfinder", "--size", "64", *options, self.data, names=["--size"], expect=1, data=False)

    def test_diverged_run(self):
        options = ["--tasks", "listops", "--attention", "softmax", "--steps", "3", "--learning-rate", "1000", "--warmup", "0",
                   "--set", "schedule=constant", "--set", "init=lra", "--clip-norm", "0", "--attention", "polynomial:power=8,scale=1e-6"]
        done = self.suite(*options, expect=1)
        diverged = [r for r in self.records().values() if r["status"] == "diverged"]
        self.assertGreaterEqual(len(diverged), 1)
        self.assertEqual(done.stderr.count("lra-suite: "), len(diverged))
        self.assertIn("diverged at step", done.stderr)
        self.assertIn("failed or diverged", done.stdout)
        self.assertEqual(self.suite(*options, expect=1).stderr.count("diverged at step"), len(diverged))

    def long_options(self, steps=4000):
        return ["--tasks", "listops", *GRID, "--steps", str(steps), "--eval-every", "0", "--threads", "2"]

    def test_interrupted_and_killed_suites_go_on(self):
        whole = self.long_options(15000)
        rng = random.Random(0)
        for kind in (signal.SIGINT, signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
            process = self.start(*whole, "--jobs", str(rng.choice((1, 2))))
            done = len([r for r in self.out().rglob("predictions-test.jsonl")])
            self.wait_for(lambda: processes.children(process.pid), process)
            children = processes.children(process.pid)
            time.sleep(0.2 + rng.random())
            process.send_signal(kind)
            out, err = process.communicate(timeout=60)
            if kind == signal.SIGKILL:
                # Its programs save and end on their own.
                self.wait_for(lambda: not any(processes.alive(pid) for pid in children))
                self.assertEqual(process.returncode, -signal.SIGKILL)
            else:
                self.assertEqual(process.returncode, 130, out + err)
                self.assertIn("interrupted, the same command goes on", out)
            self.assertGreaterEqual(len([r for r in self.out().rglob("predictions-test.jsonl")]), done)
        self.assertIn("4 of 4 cells done", self.suite(*whole).stdout)
        # The same as in one go.
        name = self._testMethodName
        self._testMethodName = name + "_whole"
        self.suite(*whole)
        whole_out, self._testMethodName = self.out(), name
        for path in whole_out.rglob("checkpoint-last.safetensors"):
            other = self.out() / path.relative_to(whole_out)
            self.assertEqual(path.read_bytes(), other.read_bytes(), path)

    def test_killed_program_is_a_failed_cell(self):
        process = self.start(*self.long_options())
        first = self.out() / "listops/nystromformer/softmax/seed-0"
        self.wait_for(lambda: processes.children(process.pid) and (first / "metrics.jsonl").exists(), process)
        os.kill(processes.children(process.pid)[0], signal.SIGKILL)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1)
        self.assertIn("3 of 4 cells done, 1 failed", out)
        self.assertIn("listops softmax seed 0: ended by signal 9", err)
        record = self.record(first)
        self.assertEqual((record["status"], record["error"][:17]), ("failed", "ended by signal 9"))
        self.assertIn("4 of 4 cells done", self.suite(*self.long_options()).stdout)
        self.assertEqual(self.record(first)["status"], "completed")

    def test_removed_files(self):
        options = ["--tasks", "listops", "--attention", "softmax", "--steps", "2"]
        cell = self.out() / "listops/nystromformer/softmax/seed-0"
        self.suite(*options)
        (cell / "result.json").write_text('{"schema"')
        done = self.suite(*options, expect=1)
        self.assertIn(f"{cell / 'result.json'}:1:", done.stderr)
        self.assertIn("not JSON", self.suite(*options, "--status").stdout)
        # Without it the run is written anew from its checkpoint.
        (cell / "result.json").unlink()
        self.assertIn("1 of 1 cells done", self.suite(*options).stdout)
        (cell / "result.json").unlink()
        (cell / "checkpoint-last.safetensors").unlink()
        done = self.suite(*options, expect=1)
        self.assertIn("checkpoint-last.safetensors", done.stderr)

    def test_files_that_cannot_grow(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))
        done = self.suite("--tasks", "listops", "--attention", "softmax", "--steps", "2", expect=1, preexec_fn=limit)
        self.assertIn("listops softmax seed 0: ", done.stderr)
        self.assertIn("File too large", done.stderr)
        self.assertIn("1 of 1 cells done", self.suite("--tasks", "listops", "--attention", "softmax", "--steps", "2").stdout)

    def test_two_suites_share_a_grid(self):
        one, other = self.start(*self.long_options(), "--jobs", "1"), self.start(*self.long_options(), "--jobs", "1")
        self.wait_for(lambda: " running " in self.suite(*self.long_options(), "--status").stdout)
        ends = [process.communicate(timeout=120) for process in (one, other)]
        self.assertEqual([one.returncode, other.returncode], [0, 0], ends)
        lines = [line for _, err in ends for line in err.splitlines() if " done " in line]
        self.assertEqual(len(lines), 4, ends)  # no cell twice
        self.assertEqual(len(set(line.split(" done ")[0] for line in lines)), 4)
        self.assertTrue(all(any(" done " in line for line in err.splitlines()) for _, err in ends), ends)
        self.assertEqual(sum(r["status"] == "completed" for r in self.records().values()), 4)


if __name__ == "__main__":
    sys.argv = sys.argv[:1] + ["-v"] + sys.argv[4:]
    unittest.main()
