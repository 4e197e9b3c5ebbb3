#!/usr/bin/env python3
"""Makes the fixtures of the PNG and Pathfinder tests and prints the hashes that the tests expect, read with Pillow,
NumPy and xxhash. Needs a folder of original pictures: make_pathfinder.py .../pathfinder32/curv_contour_length_14"""
import pathlib
import shutil
import struct
import sys
import zlib

import numpy as np
import xxhash
from PIL import Image

HERE = pathlib.Path(__file__).parent
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def interlaced(levels):
    """An Adam7 picture, which Pillow can't write."""
    height, width = levels.shape
    rows = b""
    for x, y, dx, dy in PASSES:
        for row in levels[y::dy, x::dx]:
            if row.size:
                rows += b"\0" + row.tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def make_png():
    folder = HERE / "png"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    levels = ((np.arange(32)[:, None] * 7 + np.arange(32)[None, :] * 11) % 256).astype(np.uint8)
    grey = Image.fromarray(levels, "L")
    grey.save(folder / "grey.png")
    (folder / "interlaced.png").write_bytes(interlaced(levels))
    Image.fromarray(levels[:3, :5].copy(), "L").save(folder / "5x3.png")
    Image.fromarray(np.zeros((32, 32), np.uint8), "L").save(folder / "black.png")
    Image.fromarray(levels.astype(np.uint16) * 257).save(folder / "grey16.png")
    grey.convert("RGB").save(folder / "rgb.png")
    grey.convert("RGBA").save(folder / "rgba.png")
    grey.convert("LA").save(folder / "grey-alpha.png")
    grey.convert("P").save(folder / "palette.png")
    grey.convert("1").save(folder / "1bit.png")
    Image.new("L", (33, 33), 9).save(folder / "33x33.png")
    whole = (folder / "grey.png").read_bytes()
    (folder / "half.png").write_bytes(whole[: len(whole) // 2])
    (folder / "no-end.png").write_bytes(whole[:-12])
    (folder / "empty.png").write_bytes(b"")
    (folder / "text.png").write_bytes(b"imgs/0 sample_0.png 0 1\n")
    grey.save(folder / "jpeg.png", "JPEG")
    broken = bytearray(whole)
    broken[whole.index(b"IDAT") + 20] ^= 0x55
    (folder / "damaged.png").write_bytes(broken)
    for name in ("grey", "interlaced"):
        assert (np.asarray(Image.open(folder / f"{name}.png")) == levels).all()


def make_set(original):
    """Fourteen original pictures in two folders, metadata as text."""
    folder = HERE / "pathfinder32" / "curv_contour_length_14"
    shutil.rmtree(folder.parent, ignore_errors=True)
    (folder / "metadata").mkdir(parents=True)
    rows = [line.split() for line in (original / "metadata" / "0.npy").read_text().splitlines()]
    for batch, first in ((0, 0), (10, 8)):
        (folder / "imgs" / str(batch)).mkdir(parents=True)
        text = ""
        for row in rows[first : first + (8 if batch == 0 else 6)]:
            shutil.copy(original / row[0] / row[1], folder / "imgs" / str(batch) / row[1])
            text += " ".join([f"imgs/{batch}", *row[1:]]) + "\n"
        (folder / "metadata" / f"{batch}.npy").write_text(text)
    return folder


def make_metadata(folder):
    target = HERE / "pathfinder-metadata"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    rows = [line.split() for line in (folder / "metadata" / "0.npy").read_text().splitlines()][:3]
    array = np.array(rows)

    def save(name, values, version=(1, 0), **options):
        with open(target / f"{name}.npy", "wb") as file:
            np.lib.format.write_array(file, values, version=version, **options)

    save("unicode-1", array)
    save("unicode-2", array, (2, 0))
    save("unicode-3", array, (3, 0))
    save("bytes", array.astype("S"))
    save("wide", array.astype("<U40"))
    save("fortran", np.asfortranarray(array))
    save("object", array.astype(object), allow_pickle=True)
    save("float", array[:, 2:].astype(np.float64))
    save("flat", array[0])
    save("narrow", array[:, :3])
    save("big-endian", array.astype(">U16"))
    save("records", np.array([("imgs/0", "a.png")], dtype=[("f", "<U8"), ("g", "<U8")]))
    save("none", array[:0])


def hash_examples(examples):
    state = xxhash.xxh64(seed=0)
    for ids, label in examples:
        state.update(np.array([label, len(ids), *ids], "<i4").tobytes())
    return state.hexdigest()


def print_splits(folder, shift=0):
    pictures = []
    for file in sorted(folder.glob("metadata/*.npy"), key=lambda path: int(path.stem)):
        for line in file.read_text().splitlines():
            where, name, _, label = line.split()[:4]
            pictures.append((f"{where}/{name}", int(label)))
    pictures.sort(key=lambda entry: (xxhash.xxh64(entry[0].encode(), seed=0).intdigest(), entry[0]))
    count = len(pictures)
    cuts = [0, count * 8 // 10, count * 9 // 10, count]
    for name, begin, end in zip(("train", "validation", "test"), cuts, cuts[1:]):
        examples = [
            (np.asarray(Image.open(folder / path)).astype(np.int32).ravel() + shift, label)
            for path, label in pictures[begin:end]
        ]
        print(f"shift {shift} {name}: {end - begin} pictures, {sum(e[1] for e in examples)} joined,", hash_examples(examples))


if __name__ == "__main__":
    original = pathlib.Path(sys.argv[1])
    if "--only-hash" not in sys.argv:
        make_png()
        make_metadata(make_set(original))
        original = HERE / "pathfinder32" / "curv_contour_length_14"
    print_splits(original)
    print_splits(original, shift=1)
