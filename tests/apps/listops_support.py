"""What the tests of lra-listops share: tiny data made by hand, running the program, reading run folders.

Each test script is called with the program, the record validator and the schema: SCRIPT LRA-LISTOPS VALIDATOR SCHEMA.
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from task_data import write_listops

PROGRAM, VALIDATOR, SCHEMA = sys.argv[1:4]

# A model that takes milliseconds a step; its options are recipe fields, so that they can be repeated on resume.
TINY = ["--dim", "16", "--hidden", "16", "--max-length", "64", "--batch-size", "4"]


def sha(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def comparable(path):
    """Lines of metrics.jsonl without what depends on the clock."""
    lines = lines_of(path)
    for line in lines:
        line.pop("samples_per_second", None)
    return lines


class ListopsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="lra-listops-"))
        cls.data = write_listops(cls.folder / "data")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def out(self, name=None):
        return self.folder / (name or self._testMethodName)

    def command(self, *options, data=True):
        return [PROGRAM] + (["--data", str(self.data)] if data else []) + [str(o) for o in options]

    def run_program(self, *options, data=True, expect=0, **popen):
        popen.setdefault("cwd", self.folder)
        done = subprocess.run(self.command(*options, data=data), capture_output=True, text=True, timeout=300, **popen)
        self.assertEqual(done.returncode, expect, f"{options}\n{done.stdout}\n{done.stderr}")
        return done

    def refused(self, expect, *options, names=(), data=True, **popen):
        """One line on stderr that names the fault; nothing on stdout."""
        done = self.run_program(*options, data=data, expect=expect, **popen)
        lines = [line for line in done.stderr.splitlines() if line.startswith("lra-listops: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertEqual(done.stderr.splitlines()[-1], lines[0], "the error comes last")
        self.assertEqual(done.stdout, "")
        for name in names:
            self.assertIn(str(name), lines[0])
        return lines[0]

    def train(self, *options, expect=0, out=None, tiny=True, **popen):
        out = out or self.out()
        return self.run_program(*(TINY if tiny else []), "--progress", "none", "--out", out, *options, expect=expect,
                                **popen)

    def record(self, out):
        """The record, after it was found to fit the schema."""
        done = subprocess.run([VALIDATOR, SCHEMA, str(out / "result.json")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads((out / "result.json").read_text())

    def assert_same_run(self, a, b):
        """Bit-equal checkpoints, equal metrics and predictions."""
        for name in ("checkpoint-last.safetensors", "checkpoint-best.safetensors", "optimizer-last.safetensors",
                     "predictions-test.jsonl"):
            self.assertEqual(sha(a / name), sha(b / name), name)
        self.assertEqual(comparable(a / "metrics.jsonl"), comparable(b / "metrics.jsonl"))
        one, other = self.record(a), self.record(b)
        for key in ("metrics", "history", "recipe", "data", "model", "status"):
            self.assertEqual(one[key], other[key], key)


def wait_for(condition, process, seconds=60):
    import time
    end = time.time() + seconds
    while time.time() < end:
        if condition():
            return True
        if process.poll() is not None:
            return False
        time.sleep(0.002)
    return False


def main():
    sys.argv = sys.argv[:1] + ["-v"] + sys.argv[4:]
    unittest.main(module="__main__")
