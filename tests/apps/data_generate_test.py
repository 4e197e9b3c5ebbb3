"""lra-data generate pathfinder as a user runs it: python3 data_generate_test.py PROGRAM [unittest options]."""

import hashlib
import os
import signal
import subprocess
import time

import data_support
from data_support import DataTest, read_png


def digests(folder):
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}


class GeneratePathfinderTest(DataTest):
    def generate(self, name, *arguments):
        self.succeeds("generate", "pathfinder", "--out", self.folder / name, "--count", 30, *arguments)
        return self.folder / name

    def test_layout(self):
        out = self.generate("set", "--truth", "--size", 64, "--level", "9")
        folder = out / "pathfinder64" / "curv_contour_length_9"
        self.assertEqual(sorted(os.listdir(folder)), ["imgs", "metadata", "truth"])
        rows = [line.split(" ") for line in (folder / "metadata" / "0.npy").read_text().splitlines()]
        self.assertEqual([row[:3] for row in rows], [["imgs/0", f"sample_{k}.png", str(k)] for k in range(30)])
        self.assertEqual({row[3] for row in rows}, {"0", "1"})
        for name in ("imgs", "truth"):
            width, height, pixels = read_png(folder / name / "0" / "sample_29.png")
            self.assertEqual((width, height), (64, 64))
            self.assertGreater(max(pixels), 0)
        self.assertEqual(sorted(os.listdir(self.folder)), ["set"])

    def test_a_function_of_the_seed(self):
        one = digests(self.generate("one", "--seed", 3, "--threads", 1))
        self.assertEqual(one, digests(self.generate("five", "--seed", 3, "--threads", 5)))
        self.assertNotEqual(one, digests(self.generate("other", "--seed", 4)))
        npy = digests(self.generate("npy", "--seed", 3, "--metadata", "npy"))
        self.assertEqual({path for path in one if one[path] != npy[path]},
                         {"pathfinder32/curv_contour_length_14/metadata/0.npy"})

    def test_check_reads_it(self):
        out = self.generate("set", "--level", "baseline")
        output = self.succeeds("check", "pathfinder", out, "--level", "baseline")
        for part in ("train: 24 rows", "validation: 3 rows", "test: 3 rows", "also in train   0 rows"):
            self.assertIn(part, output)

    def test_does_not_overwrite(self):
        out = self.generate("set")
        before = digests(out)
        self.fails(2, "--force", "generate", "pathfinder", "--out", out, "--count", 5)
        self.assertEqual(before, digests(out))
        self.generate("set", "--level", "9")  # another set beside it
        self.generate("set", "--seed", 1, "--force")
        now = digests(out)
        self.assertNotEqual(before, {path: now[path] for path in before})
        self.assertEqual(len(now), 2 * len(before))

    def test_interrupt_leaves_nothing(self):
        for stop in (signal.SIGINT, signal.SIGTERM):
            out = self.folder / stop.name / "new"
            process = subprocess.Popen([data_support.PROGRAM, "generate", "pathfinder", "--out", out],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            deadline = time.monotonic() + 60
            while not any(out.rglob("*.png")) and time.monotonic() < deadline:
                time.sleep(0.02)
            process.send_signal(stop)
            _, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, errors)
            self.assertIn("lra-data: interrupted", errors)
            self.assertEqual(os.listdir(self.folder), [])

    def test_where_nothing_can_be_written(self):
        (self.folder / "file").write_text("a file")
        self.fails(1, str(self.folder / "file"), "generate", "pathfinder", "--out", self.folder / "file", "--count", 5)
        self.assertEqual(os.listdir(self.folder), ["file"])


if __name__ == "__main__":
    data_support.main()
