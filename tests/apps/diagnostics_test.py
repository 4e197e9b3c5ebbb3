"""--norms and --maps of the task programs: SCRIPT LRA-LISTOPS VALIDATOR SCHEMA; lra-retrieval lies beside lra-listops."""
import json
import math
import pathlib
import signal
import struct
import subprocess
import unittest
import zlib

import listops_support as support
from listops_support import ListopsTest, TINY, lines_of, sha, wait_for
from task_data import write_listops, write_retrieval

KEYS = ["step", "layer", "head", "frobenius_mean", "frobenius_std", "frobenius_per_sqrt_n", "jacobian",
        "jacobian_exact", "score_gradient", "max_score", "entropy", "saturated_share", "negative_share"]
OPTIONS = [*TINY, "--steps", "24", "--warmup", "4", "--eval-every", "8", "--progress", "none"]


def png_size(path):
    """Width and height of an RGB PNG, after its chunks, checksums and number of bytes were found right."""
    blob = path.read_bytes()
    assert blob[:8] == b"\x89PNG\r\n\x1a\n", path
    at, data, kinds = 8, b"", []
    while at < len(blob):
        size, kind = struct.unpack(">I4s", blob[at:at + 8])
        content = blob[at + 8:at + 8 + size]
        assert struct.unpack(">I", blob[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + content), path
        kinds.append(kind)
        if kind == b"IHDR":
            width, height, depth, colours = struct.unpack(">IIBB", content[:10])
        elif kind == b"IDAT":
            data += content
        at += 12 + size
    assert (kinds[0], kinds[-1], depth, colours) == (b"IHDR", b"IEND", 8, 2), path
    assert len(zlib.decompress(data)) == height * (1 + 3 * width), path
    return width, height


class Norms(ListopsTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.runs = {}
        for attention in ("softmax", "polynomial:power=2"):
            cls.runs[attention] = cls.folder / f"whole-{attention[:4]}"
            subprocess.run([support.PROGRAM, "--data", str(cls.data), *OPTIONS, "--attention", attention, "--norms",
                            "--out", str(cls.runs[attention])], check=True, capture_output=True)

    def test_lines_and_record(self):
        for attention, out in self.runs.items():
            lines = lines_of(out / "norms.jsonl")
            self.assertEqual([(n["step"], n["layer"], n["head"]) for n in lines],
                             [(step, layer, head) for step in (8, 16, 24) for layer in (0, 1) for head in (0, 1)])
            record = self.record(out)
            self.assertEqual(record["norms"], lines)
            for line in lines:
                self.assertEqual(list(line), KEYS)
                self.assertIs(line["jacobian_exact"], True)
                for key in KEYS[3:]:
                    self.assertTrue(math.isfinite(line[key]), key)
                self.assertEqual(line["negative_share"], 0)
                if attention == "softmax":
                    self.assertGreaterEqual(line["frobenius_mean"], 1 - 1e-6)
                    self.assertLessEqual(line["frobenius_per_sqrt_n"], 1 + 1e-6)
                    self.assertLessEqual(line["jacobian"], math.sqrt(64) / 2)

    def test_training_is_the_same_without(self):
        for attention, out in self.runs.items():
            other = self.out(f"without-{attention[:4]}")
            self.run_program(*OPTIONS, "--attention", attention, "--out", other, "--threads", "1")
            self.assert_same_run(out, other)
            self.assertEqual(self.record(other)["norms"], [])
            self.assertFalse((other / "norms.jsonl").exists())

    def test_threads_change_nothing(self):
        self.run_program(*OPTIONS, "--norms", "--threads", "3", "--out", self.out())
        self.assertEqual((self.out() / "norms.jsonl").read_text(), (self.runs["softmax"] / "norms.jsonl").read_text())

    def test_resumed_equals_uninterrupted(self):
        out = self.out()
        process = subprocess.Popen(self.command(*OPTIONS, "--norms", "--checkpoint-every", "0", "--out", out),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder)
        norms = out / "norms.jsonl"
        self.assertTrue(wait_for(lambda: norms.exists() and '"step":8' in norms.read_text(), process))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        with open(norms, "a") as file:  # what a crash may leave behind the checkpoint
            file.write('{"step":24,"layer":0,"head":0}\n{"st')
        self.refused(2, "--resume", "--out", out, "--maps", "2", names=["--maps"])
        self.run_program("--resume", "--out", out)
        self.assert_same_run(self.runs["softmax"], out)
        self.assertEqual(norms.read_text(), (self.runs["softmax"] / "norms.jsonl").read_text())
        self.assertEqual(self.record(out)["norms"], lines_of(norms))

    def test_killed_and_resumed(self):
        out = self.out()
        process = subprocess.Popen(self.command(*OPTIONS, "--norms", "--checkpoint-every", "0", "--out", out),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder)
        norms = out / "norms.jsonl"
        wait_for(lambda: norms.exists() and '"step":16' in norms.read_text(), process)
        process.kill()
        process.communicate(timeout=60)
        self.run_program("--resume", "--out", out)
        self.assertEqual(norms.read_text(), (self.runs["softmax"] / "norms.jsonl").read_text())
        self.assertEqual(self.record(out)["norms"], lines_of(norms))

    def test_force_leaves_nothing_of_the_run_before(self):
        out = self.out()
        self.run_program(*OPTIONS, "--norms", "--maps", "1", "--out", out)
        self.assertTrue((out / "maps" / "sheet.png").exists())
        self.run_program(*OPTIONS, "--force", "--out", out)
        self.assertFalse((out / "norms.jsonl").exists())
        self.assertEqual(list((out / "maps").iterdir()), [])


class Maps(ListopsTest):
    def names(self, folder):
        return sorted(path.name for path in folder.iterdir())

    def test_pictures_of_test_rows(self):
        for attention in ("softmax", "polynomial"):
            out = self.out(f"maps-{attention}")
            done = self.run_program(*OPTIONS, "--attention", attention, "--maps", "3", "--out", out)
            self.assertIn("maps", done.stderr)
            wanted = [f"test-{row}-layer-{layer}-head-{head}.png"
                      for row in (0, 10, 20) for layer in (0, 1) for head in (0, 1)]
            self.assertEqual(self.names(out / "maps"), sorted([*wanted, "sheet.png"]))
            for path in (out / "maps").iterdir():
                width, height = png_size(path)
                self.assertGreater(min(width, height), 300)
                self.assertLess(max(width, height), 1200)
            # The same again from the checkpoint.
            self.run_program("--evaluate", out / "checkpoint-best.safetensors", "--maps", "3", "--progress", "none",
                             "--out", out / "again")
            for name in self.names(out / "maps"):
                self.assertEqual(sha(out / "maps" / name), sha(out / "again" / "maps" / name), name)

    def test_more_than_there_are_rows(self):
        self.run_program(*OPTIONS, "--limit-eval", "2", "--maps", "9", "--out", self.out())
        self.assertEqual(len(self.names(self.out() / "maps")), 2 * 4 + 1)

    def test_more_than_the_sheet_has_room_for(self):
        data = write_listops(self.folder / "many", test=90)
        heights = []
        for count in (40, 90):
            out = self.out(f"maps-{count}")
            done = self.run_program("--data", data, *OPTIONS[:-2], "--maps", count, "--out", out, data=False)
            self.assertEqual(len(self.names(out / "maps")), count * 4 + 1)
            self.assertEqual("40 of them in sheet.png" in done.stderr, count > 40, done.stderr)
            heights.append(png_size(out / "maps/sheet.png"))
        self.assertEqual(*heights)

    def test_documents_of_a_pair(self):
        program = pathlib.Path(support.PROGRAM).with_name("lra-retrieval")
        data = write_retrieval(self.folder / "retrieval")
        subprocess.run([program, "--data", data, *OPTIONS, "--norms", "--maps", "1", "--out", self.out()], check=True,
                       capture_output=True)
        self.assertEqual(self.names(self.out() / "maps"),
                         sorted(["sheet.png", *(f"test-0-document-{document}-layer-{layer}-head-{head}.png"
                                                for document in (1, 2) for layer in (0, 1) for head in (0, 1))]))
        self.assertEqual(len(self.record(self.out())["norms"]), 3 * 4)

    def test_wrong_values(self):
        for value in ("-1", "x", "2.5", "10000000000", ""):
            self.refused(2, *OPTIONS, f"--maps={value}", "--out", self.out(), names=["--maps"])
        self.assertFalse(self.out().exists())
        self.refused(2, "--evaluate", "file", "--norms", names=["--norms"])


if __name__ == "__main__":
    support.main()
