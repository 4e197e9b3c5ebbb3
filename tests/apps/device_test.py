"""--backend cuda of a whole program, on the emulated device: SCRIPT LRA-LISTOPS-EMULATED MPIRUN|none."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from task_data import write_listops

PROGRAM, MPIRUN = sys.argv[1:3]
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
TINY = ["--dim", "16", "--hidden", "16", "--max-length", "64", "--batch-size", "8", "--steps", "6", "--log-every", "1",
        "--eval-every", "3", "--threads", "1", "--progress", "none"]
STATE = ("checkpoint-last.safetensors", "optimizer-last.safetensors", "predictions-test.jsonl")


def sha(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class DeviceProgram(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="lra-device-"))
        cls.data = write_listops(cls.folder / "data")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def run_program(self, *options, ranks=0, expect=0):
        launcher = [MPIRUN, "--oversubscribe", "-np", str(ranks)] if ranks else []
        done = subprocess.run([*launcher, PROGRAM, *map(str, options)], capture_output=True, text=True, timeout=300,
                              env=ENVIRONMENT)
        self.assertEqual(done.returncode, expect, f"{options}\n{done.stdout}\n{done.stderr}")
        return done

    def train(self, name, *options, **more):
        """The run folder, and its losses by step."""
        out = self.folder / name
        self.run_program("--data", self.data, *TINY, "--out", out, *options, **more)
        return out, self.losses(out)

    def losses(self, out):
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        return [line["loss"] for line in lines]

    def assert_close(self, one, other, most):
        self.assertEqual(len(one), len(other))
        self.assertLess(max(abs(a - b) for a, b in zip(one, other)), most)

    def test_a_run_is_that_of_the_cpu(self):
        for attention in ("softmax", "linear-elu", "nystrom:landmarks=8"):
            with self.subTest(attention):
                _, here = self.train(f"cpu-{attention}", "--attention", attention)
                out, there = self.train(f"cuda-{attention}", "--attention", attention, "--backend", "cuda")
                self.assertGreater(len(here), 7)
                self.assert_close(here, there, 1e-4)
                record = json.loads((out / "result.json").read_text())
                self.assertEqual(record["status"], "completed")
                self.assertEqual(record["environment"]["gpu"], "emulated device")
                self.assertEqual(record["attention"]["form"]["train"],
                                 "quadratic" if attention == "softmax" else "linear")

    def test_norms_and_maps(self):
        _, plain = self.train("plain", "--backend", "cuda")
        out, losses = self.train("diagnosed", "--backend", "cuda", "--norms", "--maps", "1")
        self.assertEqual(plain, losses)
        self.assertEqual(len((out / "norms.jsonl").read_text().splitlines()), 2 * 2 * 2)  # evaluations, layers, heads
        self.assertTrue(any((out / "maps").glob("*.png")))

    def test_killed_and_resumed(self):
        longer = ["--backend", "cuda", "--steps", "30", "--checkpoint-every", "2"]
        whole, losses = self.train("whole", *longer)
        out = self.folder / "parts"
        options = ["--data", self.data, *TINY, *longer]
        kills = 0
        for _ in range(20):
            process = subprocess.Popen([PROGRAM, *map(str, options), "--out", out], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)
            options = ["--resume"]
            while process.poll() is None:
                state = out / "state.json"
                if kills < 2 and state.exists() and json.loads(state.read_text())["state"]["step"] > 2 * kills:
                    process.kill()
                    kills += 1
                    break
                time.sleep(0.001)
            process.communicate()
            if process.returncode == 0:
                break
        self.assertEqual((process.returncode, kills), (0, 2))
        self.assertEqual(self.losses(out), losses)
        for name in STATE:
            self.assertEqual(sha(whole / name), sha(out / name), name)

    def test_precisions(self):
        _, exact = self.train("float32", "--backend", "cuda")
        for precision, most in (("tf32", 1e-2), ("bfloat16", 5e-2)):
            _, rounded = self.train(precision, "--backend", "cuda", "--precision", precision)
            self.assertNotEqual(exact, rounded)
            self.assert_close(exact, rounded, most)

    def test_evaluation_of_a_checkpoint(self):
        out, _ = self.train("trained", "--backend", "cuda")
        accuracies = []
        for backend in ("cpu", "cuda"):
            into = self.folder / f"evaluated-{backend}"
            self.run_program("--data", self.data, "--evaluate", out / "checkpoint-last.safetensors", "--split", "test",
                             "--backend", backend, "--progress", "none", "--threads", "1", "--out", into)
            record = json.loads((into / "result.json").read_text())
            accuracies.append(record["metrics"]["last"]["test_accuracy"])
        self.assertEqual(*accuracies)

    @unittest.skipIf(MPIRUN == "none", "a build without MPI")
    def test_ranks_with_a_device_each(self):
        _, alone = self.train("one", "--backend", "cuda")
        for ranks in (2, 4):
            folders = []
            for again in (1, 2):
                out, losses = self.train(f"ranks-{ranks}-{again}", "--backend", "cuda", ranks=ranks)
                self.assert_close(alone, losses, 1e-5)
                folders.append(out)
            for name in STATE:
                self.assertEqual(*(sha(folder / name) for folder in folders), name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
