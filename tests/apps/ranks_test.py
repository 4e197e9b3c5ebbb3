"""One run trained by several processes: SCRIPT LRA-LISTOPS MPIRUN."""
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from processes import children
from task_data import write_listops, write_retrieval

PROGRAM, MPIRUN = sys.argv[1:3]
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
TINY = ["--dim", "16", "--hidden", "16", "--max-length", "64", "--batch-size", "8", "--threads", "1", "--progress", "none"]


def sha(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class RanksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="lra-ranks-"))
        cls.data = write_listops(cls.folder / "data")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def command(self, ranks, *options, program=PROGRAM, data=None):
        launcher = [MPIRUN, "--oversubscribe", "-np", str(ranks)] if ranks else []
        return launcher + [program, "--data", str(data or self.data), *TINY, *map(str, options)]

    def run_ranks(self, ranks, *options, expect=0, **more):
        done = subprocess.run(self.command(ranks, *options, **more), capture_output=True, text=True, timeout=300,
                              env=ENVIRONMENT)
        self.assertEqual(done.returncode, expect, f"{ranks} {options}\n{done.stdout}\n{done.stderr}")
        return done

    def assert_same_run(self, a, b):
        for name in ("checkpoint-last.safetensors", "checkpoint-best.safetensors", "optimizer-last.safetensors",
                     "predictions-test.jsonl", "norms.jsonl"):
            self.assertEqual(sha(a / name), sha(b / name), name)
        one, other = [json.loads((folder / "result.json").read_text()) for folder in (a, b)]
        for key in ("metrics", "history", "norms", "status", "data"):
            self.assertEqual(one[key], other[key], key)
        self.assertEqual(one["status"], "completed")

    def test_any_number_of_ranks_gives_the_same_bits(self):
        alone = self.folder / "alone"
        self.run_ranks(0, "--steps", "12", "--norms", "--out", alone)
        for ranks in (1, 2, 4, 8):
            out = self.folder / f"ranks-{ranks}"
            done = self.run_ranks(ranks, "--steps", "12", "--norms", "--eval-batch-size", "7", "--out", out)
            self.assertEqual(done.stdout.count("record  "), 1, done.stdout)
            self.assert_same_run(alone, out)
            self.assertEqual(json.loads((out / "result.json").read_text())["environment"]["ranks"], ranks)

    def test_two_documents_and_a_table_of_places(self):
        program = str(pathlib.Path(PROGRAM).with_name("lra-retrieval"))
        data = write_retrieval(self.folder / "pairs")
        outs = [self.folder / "pairs-alone", self.folder / "pairs-ranks"]
        for ranks, out in zip((0, 4), outs):
            self.run_ranks(ranks, "--steps", "5", "--norms", "--out", out, program=program, data=data)
        self.assert_same_run(*outs)

    def test_a_rank_that_dies_leaves_a_run_to_go_on_with(self):
        options = ["--steps", "1500", "--eval-every", "500", "--norms", "--checkpoint-every", "0.05"]
        alone = self.folder / "killed-alone"
        self.run_ranks(0, *options, "--out", alone)
        out, rng, killed = self.folder / "killed", random.Random(0), 0
        for attempt in range(10):
            process = subprocess.Popen(self.command(rng.choice((2, 4)), *options, "--out", out, "--resume"), text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
            state, wait = out / "state.json", rng.random() * 0.4
            before = state.stat().st_mtime_ns if state.exists() else 0
            end = time.time() + 60
            while process.poll() is None and time.time() < end and \
                    (not state.exists() or state.stat().st_mtime_ns == before):
                time.sleep(0.002)
            time.sleep(wait)
            ranks = children(process.pid)
            try:
                os.kill(rng.choice(ranks), signal.SIGKILL)
                killed += 1
            except (IndexError, ProcessLookupError):  # the run was over
                pass
            process.communicate(timeout=60)
        self.assertGreaterEqual(killed, 3)
        self.run_ranks(4, *options, "--out", out, "--resume")
        self.assert_same_run(alone, out)

    def test_interrupt(self):
        out = self.folder / "interrupted"
        self.run_ranks(2, "--steps", "100000", "--warmup", "5", "--eval-every", "0", "--max-time", "0.5s", "--out", out,
                       expect=130)
        self.assertEqual(json.loads((out / "result.json").read_text())["status"], "interrupted")

    def test_refusals(self):
        def line(ranks, *options, expect=2):
            done = self.run_ranks(ranks, *options, expect=expect)
            lines = [text for text in done.stderr.splitlines() if text.startswith("lra-listops: ")]
            self.assertEqual(len(lines), 1, done.stderr)
            return lines[0]
        self.assertIn("3 processes", line(3, "--out", self.folder / "three"))
        self.assertIn("16 processes", line(16, "--out", self.folder / "sixteen"))
        self.assertFalse((self.folder / "three").exists())
        self.assertIn("--stps", line(2, "--stps", "3"))
        self.assertIn("/nowhere", line(2, "--data", "/nowhere", "--out", self.folder / "nowhere", expect=1))
        done = self.folder / "done"
        self.run_ranks(2, "--steps", "2", "--out", done)
        self.assertIn("--resume", line(2, "--steps", "2", "--out", done))
        self.assertIn("by one process", line(2, "--evaluate", done / "checkpoint-last.safetensors"))
        self.assertIn("is finished", self.run_ranks(2, "--steps", "2", "--out", done, "--resume").stderr)


if __name__ == "__main__":
    sys.argv = sys.argv[:1] + ["-v"] + sys.argv[3:]
    unittest.main()
