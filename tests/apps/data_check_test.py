"""lra-data check on every task: counts and hashes against readers of its own, bad rows, layouts. PROGRAM [options]."""

import re
import shutil

import data_support
import task_data
from data_support import DataTest, run, split_hash

SPLITS = ("train", "validation", "test")


class CheckTest(DataTest):
    def agrees(self, rows, *arguments):
        """What `check` prints agrees with `rows`, {split: [(label, ids...)]}, in counts, labels, lengths and hash."""
        output = self.succeeds("check", *arguments)
        seen = {}
        for split, count, digest in re.findall(r"(?m)^(\w+): (\d+) rows, hash ([0-9a-f]{16})", output):
            seen[split] = (int(count), digest)
        self.assertEqual(seen, {split: (len(rows[split]), split_hash(rows[split])) for split in SPLITS})
        blocks = output.split("\n\n")
        for split, block in zip(SPLITS, blocks[1:]):
            raw = arguments[0] in ("image", "pathfinder") and "shifted" not in arguments
            lengths = sorted(sum(len(ids) - (ids.count(0) if raw else 0) for ids in row[1:]) for row in rows[split])
            self.assertIn(f"min {lengths[0]}, median {lengths[(len(lengths) - 1) // 2]}, "
                          f"mean {sum(lengths) / len(lengths):.1f}, ", block)
            self.assertIn(f"max {lengths[-1]}", block)
            self.assertEqual("black pixels" in block, raw)
            labels = block.split("rows a label")[1].split(";")[0]
            for label, count in re.findall(r"(\d+)(?: \([a-z ]+\))?: (\d+)", labels):
                self.assertEqual(int(count), sum(row[0] == int(label) for row in rows[split]))
            if split != "train":
                shared = sum(row in rows["train"] for row in rows[split])
                self.assertIn(f"also in train   {shared} rows", block)
            self.assertIn("bad rows        none", block)
        return output

    def test_text(self):
        folder = task_data.write_text(self.folder / "films à voir")
        (folder / "train" / "pos" / "100_9.txt").write_bytes(b"")
        (folder / "train" / "neg" / "100_1.txt").write_bytes(bytes(range(256)))
        (folder / "test" / "neg" / "100_1.txt").write_bytes(b"\xff" * 5000)
        shutil.copy(folder / "train" / "pos" / "3_{}.txt".format(
            next((folder / "train" / "pos").glob("3_*.txt")).stem.split("_")[1]), folder / "test" / "pos" / "50_7.txt")
        rows = data_support.read_text(folder)
        output = self.agrees(rows, "text", folder)
        self.assertIn("; a tenth of the training reviews of each class, by hash", output)
        self.assertRegex(output, r"max 4000\n  rows cut        1 \(2.4 %\)")
        self.assertIn("0 (negative): 21, 1 (positive): 21", output)
        self.agrees(rows, "text", self.folder)
        archive = task_data.pack(folder, self.folder / "aclImdb_v1.tar.gz")
        self.assertEqual(self.agrees(rows, "text", archive).split("\n", 1)[1], output.split("\n", 1)[1])
        self.fails(1, "holds more than one", "check", "text", self.folder)
        self.agrees(data_support.read_text(folder, 1 << 20), "text", folder, "--max-length", "0")
        self.agrees(data_support.read_text(folder, 7), "text", archive, "--max-length", "7", "--threads", "1")
        # The originals' protocol: all training reviews, selection on test.
        output = self.agrees({"train": rows["all"], "validation": rows["test"], "test": rows["test"]},
                             "text", folder, "--validation", "test")
        self.assertIn("; test split (the originals' protocol; selection on test)", output)

    def test_text_bad_files(self):
        folder = task_data.write_text(self.folder)
        (folder / "train" / "neg" / "notes.txt").write_text("no review")
        done = self.fails(1, "1 bad row, the first", "check", "text", folder)
        self.assertIn("notes.txt", done.stderr)
        archive = task_data.pack(folder, self.folder / "reviews.tar.gz")
        archive.write_bytes(archive.read_bytes()[:-700])
        self.fails(1, "reviews.tar.gz", "check", "text", archive)

    def test_retrieval(self):
        folder = task_data.write_retrieval(self.folder / "pairs")
        with open(folder / "new_aan_pairs.test.tsv", "ab") as file:
            file.write((folder / "new_aan_pairs.train.tsv").read_bytes().split(b"\n")[4] + b"\n")
            file.write(b'1\ta\tb\tone " quote\t' + b"z" * 4500 + b"\r\n")
        rows = data_support.read_retrieval(folder)
        output = self.agrees(rows, "retrieval", folder)
        self.assertIn("rows cut        1 (4.5 %)", output)
        self.assertIn("also in train   1 rows", output)
        self.agrees(rows, "retrieval", self.folder)
        self.agrees(data_support.read_retrieval(folder, 5), "retrieval", folder, "--max-length", "5")
        first = {split: rows[split][:3] for split in SPLITS}
        self.assertIn("the first 3 rows of each split", self.agrees(first, "retrieval", folder, "--limit", "3"))
        archive = task_data.pack(folder, self.folder / "pairs.tar.gz")
        for _ in range(2):  # the first time it is unpacked into the cache
            done = run("check", "retrieval", archive)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(split_hash(rows["train"]), done.stdout)
        self.assertIn(str(archive), done.stdout)

    def test_retrieval_bad_rows(self):
        folder = task_data.write_retrieval(self.folder)
        with open(folder / "new_aan_pairs.eval.tsv", "ab") as file:
            file.write(b"2.0\ta\tb\tone\ttwo\n1.0\ta\tb\tone\ttwo\tsix\n\n")
        done = self.fails(1, "3 bad rows, the first new_aan_pairs.eval.tsv:21", "check", "retrieval", folder)
        self.assertIn("validation: 20 rows", done.stdout)

    def test_image(self):
        folder = task_data.write_image(self.folder, each=4)
        rows = data_support.read_image(folder)
        output = self.agrees(rows, "image", folder)
        self.assertIn("train: 18 rows", output)
        self.assertIn("; the last tenth of the training rows, in file order", output)
        self.agrees(data_support.read_image(folder, 1), "image", self.folder, "--pixel-tokens", "shifted")
        archive = task_data.pack(folder, self.folder / "cifar-10-binary.tar.gz")
        self.agrees(rows, "image", archive)
        (folder / "data_batch_2.bin").write_bytes(bytes([10]) * 3073 + (folder / "data_batch_1.bin").read_bytes())
        self.fails(1, "1 bad row, the first", "check", "image", folder)
        (folder / "data_batch_3.bin").write_bytes(bytes(3074))
        self.fails(1, "data_batch_3.bin", "check", "image", folder)

    def test_pathfinder(self):
        folder = task_data.write_pathfinder(self.folder / "set")
        rows = data_support.read_pathfinder(folder)
        output = self.agrees(rows, "pathfinder", self.folder)
        self.assertIn("train: 32 rows", output)
        self.assertIn("0 (not joined): ", output)
        self.agrees(rows, "pathfinder", folder, "--threads", "5")
        self.agrees(data_support.read_pathfinder(folder, 1), "pathfinder", folder, "--pixel-tokens", "shifted")
        (folder / "imgs" / "0" / "sample_3.png").unlink()
        (folder / "imgs" / "1" / "sample_4.png").write_bytes(b"no picture")
        done = self.fails(1, "2 bad rows, the first", "check", "pathfinder", folder)
        for part in ("missing picture: 1, the first metadata/0.npy:4", "no PNG: 1, the first imgs/1/sample_4.png",
                     "train: 30 rows", "validation: 4 rows", "test: 4 rows"):
            self.assertIn(part, done.stdout)

    def test_generated_pathfinder(self):
        for size, level, form in ((32, "9", "text"), (64, "baseline", "npy")):
            self.succeeds("generate", "pathfinder", "--out", self.folder, "--count", 20, "--size", size, "--level",
                          level, "--metadata", form)
            output = self.succeeds("check", "pathfinder", self.folder, "--size", size, "--level", level,
                                   "--pixel-tokens", "shifted")
            self.assertIn("train: 16 rows", output)
            self.assertIn(f"min {size * size}, median {size * size}", output)
        rows = data_support.read_pathfinder(self.folder / "pathfinder32" / "curv_contour_length_9")
        self.agrees(rows, "pathfinder", self.folder, "--level", "9")

    def test_what_is_no_data(self):
        for task in ("text", "retrieval", "image", "pathfinder"):
            self.fails(1, "no such file or folder", "check", task, self.folder / "none")
            self.fails(1, "up to four levels below", "check", task, self.folder)
            self.fails(2, f"check {task}: no PATH given", "check", task)
            self.fails(2, f"show {task}: no PATH given", "show", task)


if __name__ == "__main__":
    data_support.main()
