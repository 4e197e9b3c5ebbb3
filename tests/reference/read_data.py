"""The data sets read once more, in plain Python, for comparison with `lra-data check`.

    python read_data.py TASK PATH [--max-length N] [--pixel-tokens raw|shifted] [--validation tenth|test]

PATH is the folder or archive itself. Prints for each split the number of examples and the hash of
`data.splits.*.hash`. Needs nothing but Python; with the package xxhash it is a hundred times faster.
"""
import argparse
import array
import functools
import pathlib
import re
import struct
import sys
import tarfile
import zlib

LISTOPS_TOKENS = ({str(digit): digit + 1 for digit in range(10)} |
                  {"[MAX": 11, "[MIN": 12, "[MED": 13, "[SM": 14, "]": 15})
MAX_LENGTH = {"listops": 2000, "text": 4000, "retrieval": 4000, "image": 1024, "pathfinder": 1024}


def plain_xxh64(data):
    """XXH64, seed 0, by its specification."""
    p1, p2, p3, p4, p5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
                          0x27D4EB2F165667C5)
    mask = (1 << 64) - 1
    turn = lambda x, r: ((x << r) | (x >> (64 - r))) & mask
    mix = lambda acc, lane: turn((acc + lane * p2) & mask, 31) * p1 & mask
    at, n = 0, len(data)
    if n >= 32:
        accs = [(p1 + p2) & mask, p2, 0, -p1 & mask]
        while at + 32 <= n:
            accs = [mix(acc, lane) for acc, lane in zip(accs, struct.unpack_from("<4Q", data, at))]
            at += 32
        h = sum(turn(acc, r) for acc, r in zip(accs, (1, 7, 12, 18))) & mask
        for acc in accs:
            h = ((h ^ mix(0, acc)) * p1 + p4) & mask
    else:
        h = p5
    h = (h + n) & mask
    while at + 8 <= n:
        h = (turn(h ^ mix(0, struct.unpack_from("<Q", data, at)[0]), 27) * p1 + p4) & mask
        at += 8
    if at + 4 <= n:
        h = (turn(h ^ struct.unpack_from("<I", data, at)[0] * p1 & mask, 23) * p2 + p3) & mask
        at += 4
    for byte in data[at:]:
        h = turn(h ^ byte * p5 & mask, 11) * p1 & mask
    h = (h ^ h >> 33) * p2 & mask
    h = (h ^ h >> 29) * p3 & mask
    return h ^ h >> 32


try:
    import xxhash

    def xxh64(data):
        return xxhash.xxh64_intdigest(data, seed=0)
except ImportError:
    xxh64 = plain_xxh64


def listops(path, max_length, **_):
    """Splits of (ids, label); rows are taken to be good."""
    splits = {}
    for split, name in (("train", "train"), ("validation", "val"), ("test", "test")):
        splits[split] = []
        with open(path / f"basic_{name}.tsv") as file:
            next(file)
            for line in file:
                source, target = line.rstrip("\r\n").split("\t")
                ids = [LISTOPS_TOKENS[word] for word in source.split() if word not in "()"]
                splits[split].append((ids[:max_length], int(target)))
    return splits


def byte_ids(text, max_length):
    return [byte + 1 for byte in text[:max_length]]


def text(path, max_length, validation="tenth", **_):
    reviews = {"train": [], "test": []}  # ((number, class), bytes)

    def add(name, content):
        match = re.search(r"(train|test)/(neg|pos)/(\d+)_\d+\.txt$", name)
        if match:
            split, sentiment, number = match.groups()
            reviews[split].append(((int(number), int(sentiment == "pos")), content))

    if path.is_dir():
        for file in path.glob("*/*/*.txt"):
            add(file.as_posix(), file.read_bytes())
    else:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile():
                    add(member.name, archive.extractfile(member).read())
    train, test = (sorted(reviews[split]) for split in ("train", "test"))
    chosen = set()
    if validation == "tenth":
        for label in (0, 1):
            own = sorted((xxh64(content), key) for key, content in train if key[1] == label)
            chosen |= {key for _, key in own[:len(own) // 10]}
    rows = lambda pairs: [(byte_ids(content, max_length), key[1]) for key, content in pairs]
    return {"train": rows(pair for pair in train if pair[0] not in chosen),
            "validation": rows(test if validation == "test" else (pair for pair in train if pair[0] in chosen)),
            "test": rows(test)}


class Retrieval:
    """One split, read a line at a time: the files are gigabytes large."""

    def __init__(self, path, max_length):
        self.path, self.max_length = path, max_length

    def __iter__(self):
        with open(self.path, "rb") as file:
            for line in file:
                label, _, _, first, second = line.rstrip(b"\n").removesuffix(b"\r").split(b"\t")
                yield byte_ids(first, self.max_length), byte_ids(second, self.max_length), int(float(label))


def retrieval(path, max_length, **_):
    return {split: Retrieval(path / f"new_aan_pairs.{name}.tsv", max_length)
            for split, name in (("train", "train"), ("validation", "eval"), ("test", "test"))}


def single(x):
    """Rounded to float32."""
    return struct.unpack("f", struct.pack("f", x))[0]


SHARES = [[single(single(share) * single(level * single(1.0 / 255.0))) for level in range(256)]
          for share in (0.2989, 0.5870, 0.1140)]


@functools.lru_cache(1 << 20)
def grey(r, g, b):
    """TensorFlow's rgb_to_grayscale on uint8."""
    y = single(single(SHARES[0][r] + SHARES[1][g]) + SHARES[2][b])
    return int(single(255.5 * y))


def image(path, max_length, pixel_tokens="raw", **_):
    shift = int(pixel_tokens == "shifted")

    def batch(content):
        for at in range(0, len(content), 3073):
            picture = content[at + 1:at + 3073]
            yield ([grey(*rgb) + shift for rgb in zip(picture[:1024], picture[1024:2048], picture[2048:])][:max_length],
                   content[at])

    names = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
    if path.is_dir():
        files = {name: (path / name).read_bytes() for name in names}
    else:
        with tarfile.open(path) as archive:
            files = {pathlib.PurePath(member.name).name: archive.extractfile(member).read()
                     for member in archive if member.isfile()}
    train = [row for name in names[:5] for row in batch(files[name])]
    cut = len(train) - len(train) // 10
    return {"train": train[:cut], "validation": train[cut:], "test": list(batch(files["test_batch.bin"]))}


def png(content):
    """Grey levels of an 8-bit grey PNG that is not interlaced, row by row."""
    at, packed = 8, b""
    while at < len(content):
        length, kind = struct.unpack_from(">I4s", content, at)
        if kind == b"IHDR":
            width, height, depth, colours, _, _, interlaced = struct.unpack_from(">IIBBBBB", content, at + 8)
            assert (depth, colours, interlaced) == (8, 0, 0)
        if kind == b"IDAT":
            packed += content[at + 8:at + 8 + length]
        at += 12 + length
    raw, above, pixels = zlib.decompress(packed), bytes(width), []
    for y in range(height):
        kind, line = raw[y * (width + 1)], bytearray(raw[y * (width + 1) + 1:(y + 1) * (width + 1)])
        for x in range(width):
            left, up, corner = (line[x - 1], above[x], above[x - 1]) if x else (0, above[x], 0)
            paeth = min((left, up, corner), key=lambda value: abs(left + up - corner - value))
            line[x] = (line[x] + (0, left, up, (left + up) // 2, paeth)[kind]) & 255
        pixels += line
        above = line
    return pixels


def pathfinder(path, max_length, pixel_tokens="raw", **_):
    shift = int(pixel_tokens == "shifted")
    rows = []  # (path, label)
    for file in (path / "metadata").iterdir():
        for line in file.read_text().splitlines():  # as text
            folder, name, _, label = line.split()[:4]
            rows.append((f"{folder}/{name}", int(label)))
    rows.sort(key=lambda row: (xxh64(row[0].encode()), row[0]))
    cuts = (0, int(len(rows) * 8 // 10), int(len(rows) * 9 // 10), len(rows))
    read = lambda name: [level + shift for level in png((path / name).read_bytes())][:max_length]
    return {split: [(read(name), label) for name, label in rows[cuts[i]:cuts[i + 1]]]
            for i, split in enumerate(("train", "validation", "test"))}


READERS = {"listops": listops, "text": text, "retrieval": retrieval, "image": image, "pathfinder": pathfinder}


def read(task, path, **options):
    """{"train": rows, …}; a row is (ids, label), of pairs (ids, ids2, label)."""
    options = {"max_length": MAX_LENGTH[task], **{key: value for key, value in options.items() if value is not None}}
    return READERS[task](pathlib.Path(path), **options)


def words(row):
    label, documents = row[-1], row[:-1]
    numbers = [label]
    for ids in documents:
        numbers += [len(ids), *ids]
    if sys.byteorder == "big":
        swapped = array.array("i", numbers)
        swapped.byteswap()
        return swapped.tobytes()
    return array.array("i", numbers).tobytes()


def summary(rows):
    """(examples, hash) of a split."""
    if xxh64 is plain_xxh64:
        content = [words(row) for row in rows]
        return len(content), f"{xxh64(b''.join(content)):016x}"
    count, state = 0, xxhash.xxh64(seed=0)
    for row in rows:
        state.update(words(row))
        count += 1
    return count, f"{state.intdigest():016x}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=READERS)
    parser.add_argument("path")
    parser.add_argument("--max-length", type=int)
    parser.add_argument("--pixel-tokens", choices=("raw", "shifted"))
    parser.add_argument("--validation", choices=("tenth", "test"))
    o = parser.parse_args()
    splits = read(o.task, o.path, max_length=o.max_length, pixel_tokens=o.pixel_tokens, validation=o.validation)
    for split, rows in splits.items():
        count, digest = summary(rows)
        print(f"{split}: {count} rows, hash {digest}", flush=True)


if __name__ == "__main__":
    main()
