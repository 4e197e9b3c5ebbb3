"""What the tests of lra-data share: running it, and readers of the data sets written apart from the program's own."""

import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "reference"))
from read_data import plain_xxh64 as xxh64  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))
FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "datasets" / "data"


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, encoding="utf-8", errors="replace",
                          timeout=300, **options)


class DataTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="lra-data tëst-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        cache = tempfile.TemporaryDirectory(prefix="lra-data-cache-")
        self.addCleanup(cache.cleanup)
        os.environ["XDG_CACHE_HOME"] = cache.name

    def fails(self, code, part, *arguments, **options):
        """One line on stderr that begins with the program's name and holds `part`."""
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, code, (arguments, done.stderr))
        self.assertEqual(done.stderr.count("\n"), 1, (arguments, done.stderr))
        self.assertTrue(done.stderr.startswith("lra-data: "), (arguments, done.stderr))
        self.assertIn(part, done.stderr, arguments)
        return done

    def succeeds(self, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout


def split_hash(rows):
    """Of rows (label, ids, ids...), as docs/interfaces.md says of a record's data.splits.*.hash."""
    words = []
    for label, *documents in rows:
        words.append(label)
        for ids in documents:
            words += [len(ids), *ids]
    return "%016x" % xxh64(struct.pack(f"<{len(words)}i", *words))


def read_text(folder, most=4000):
    splits = {}
    for split in ("train", "test"):
        files = [(int(path.name.split("_")[0]), label, path.read_bytes())
                 for label, name in enumerate(("neg", "pos")) for path in (folder / split / name).iterdir()]
        splits[split] = sorted(files, key=lambda file: file[:2])
    chosen = set()
    for label in (0, 1):
        of_class = [file for file in splits["train"] if file[1] == label]
        by_hash = sorted(of_class, key=lambda file: xxh64(file[2]))  # stable: ties in file order
        chosen |= {(number, label) for number, _, _ in by_hash[:len(of_class) // 10]}
    splits["validation"] = [file for file in splits["train"] if file[:2] in chosen]
    splits["all"] = splits["train"]
    splits["train"] = [file for file in splits["train"] if file[:2] not in chosen]
    return {split: [(label, [byte + 1 for byte in content[:most]]) for _, label, content in files]
            for split, files in splits.items()}


def read_retrieval(folder, most=4000):
    splits = {}
    for split, name in (("train", "train"), ("validation", "eval"), ("test", "test")):
        rows = (folder / f"new_aan_pairs.{name}.tsv").read_bytes().split(b"\n")[:-1]
        fields = [row.rstrip(b"\r").split(b"\t") for row in rows]
        splits[split] = [(int(float(f[0])), [b + 1 for b in f[3][:most]], [b + 1 for b in f[4][:most]]) for f in fields]
    return splits


def f32(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def grey(red, green, blue):
    """TensorFlow's rgb_to_grayscale on uint8: every step is rounded to float32."""
    r, g, b = (f32(value * f32(1 / f32(255))) for value in (red, green, blue))
    y = f32(f32(f32(f32(0.2989) * r) + f32(f32(0.5870) * g)) + f32(f32(0.1140) * b))
    return int(f32(f32(255.5) * y))


def read_image(folder, shift=0):
    def rows(name):
        data = (folder / name).read_bytes()
        for at in range(0, len(data), 3073):
            pixels = zip(*(data[at + 1 + 1024 * c:at + 1025 + 1024 * c] for c in range(3)))
            yield data[at], [grey(*pixel) + shift for pixel in pixels]
    train = [row for i in range(1, 6) for row in rows(f"data_batch_{i}.bin")]
    kept = len(train) - len(train) // 10
    return {"train": train[:kept], "validation": train[kept:], "test": list(rows("test_batch.bin"))}


def read_png(path):
    """Width, height and pixels of an 8-bit grey PNG that is not interlaced."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        content = data[at + 8:at + 8 + size]
        assert zlib.crc32(kind + content) == struct.unpack_from(">I", data, at + 8 + size)[0]
        if kind == b"IHDR":
            width, height, *form = struct.unpack(">IIBBBBB", content)
            assert form == [8, 0, 0, 0, 0], form
        elif kind == b"IDAT":
            packed += content
        at += 12 + size
    raw, pixels, above = zlib.decompress(packed), [], [0] * width
    for y in range(height):
        kind, line = raw[y * (width + 1)], []
        for x, byte in enumerate(raw[y * (width + 1) + 1:(y + 1) * (width + 1)]):
            left, corner = (line[x - 1], above[x - 1]) if x else (0, 0)
            up = above[x]
            paeth = min((left, up, corner), key=lambda value: abs(left + up - corner - value))
            line.append((byte + (0, left, up, (left + up) // 2, paeth)[kind]) & 255)
        pixels += line
        above = line
    return width, height, pixels


def read_pathfinder(folder, shift=0):
    rows = []
    for names in sorted((folder / "metadata").iterdir(), key=lambda path: int(path.stem)):
        for line in names.read_text().splitlines():
            place, file, _, label = line.split(" ")[:4]
            path = f"{place}/{file}"
            pixels = read_png(folder / path)[2]
            rows.append((xxh64(path.encode()), path, int(label), [pixel + shift for pixel in pixels]))
    rows = [(label, pixels) for _, _, label, pixels in sorted(rows)]
    n = len(rows)
    return {"train": rows[:n * 8 // 10], "validation": rows[n * 8 // 10:n * 9 // 10], "test": rows[n * 9 // 10:]}


def main():
    unittest.main()
