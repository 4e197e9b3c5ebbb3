"""Records made by hand for lra-compare, and the program run on them: SCRIPT LRA-COMPARE RESULT-EXAMPLE
VALIDATE-RECORD COMPARISON-SCHEMA."""
import copy
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, EXAMPLE, VALIDATE, SCHEMA = sys.argv[1:5]
RECORD = json.loads(pathlib.Path(EXAMPLE).read_text())
CUBE = "polynomial:power=3,scale=16"


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lra-compare-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, attention, seed, accuracy, task="listops", change=None):
        record = copy.deepcopy(RECORD)
        record["task"]["name"] = task
        record["attention"]["spec"] = attention
        record["seed"] = seed
        record["metrics"]["best"].update(test_accuracy=accuracy, test_examples=2000)
        record["metrics"]["last"].update(test_accuracy=accuracy)
        record["data"]["splits"]["test"]["majority_share"] = 0.17
        if change:
            change(record)
        name = f"{task}-{attention.replace(':', '-')}-{seed}-{len(list(self.folder.iterdir()))}".replace("/", "-")
        (self.folder / name).mkdir()
        path = self.folder / name / "result.json"
        path.write_text(json.dumps(record))
        return path

    def write_runs(self, attention, accuracies, task="listops", change=None):
        return [self.write(attention, seed, accuracy, task, change) for seed, accuracy in enumerate(accuracies)]

    def run_program(self, *options, expect=0, **how):
        done = subprocess.run([PROGRAM, *map(str, options)], capture_output=True, text=True, cwd=self.folder, timeout=120,
                              **how)
        self.assertEqual(done.returncode, expect, f"{options}\n{done.stdout[:4000]}\n{done.stderr}")
        if expect:
            self.assertEqual(done.stderr.splitlines()[-1][:13], "lra-compare: ", done.stderr)
            self.assertEqual(done.stdout, "")
        return done

    def json_of(self, *options):
        """What the program writes, checked against its schema."""
        text = self.run_program(".", "--format", "json", *options).stdout
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(text)
            file.flush()
            done = subprocess.run([VALIDATE, SCHEMA, file.name], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        return json.loads(text)
