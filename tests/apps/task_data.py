"""Tiny data sets of all five tasks in the layouts that users have, made by hand."""
import io
import random
import struct
import tarfile
import zlib


def png(pixels, side):
    """An 8-bit grey PNG; each row is filtered by another of the five filters."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    raw, above = b"", bytes(side)
    for y in range(side):
        line, kind = pixels[y * side:(y + 1) * side], y % 5
        coded = bytearray()
        for x in range(side):
            left, up, corner = (line[x - 1], above[x], above[x - 1]) if x else (0, above[x], 0)
            paeth = min((left, up, corner), key=lambda value: abs(left + up - corner - value))
            coded.append((line[x] - (0, left, up, (left + up) // 2, paeth)[kind]) & 255)
        raw, above = raw + bytes([kind]) + bytes(coded), line
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def expression(rng, depth=0):
    """A random expression in the release's spelling, and its value."""
    operator = rng.choice(["[MAX", "[MIN", "[MED", "[SM"])
    text, values = operator, []
    for _ in range(rng.randint(2, 4)):
        if depth < 2 and rng.random() < 0.3:
            inner, value = expression(rng, depth + 1)
        else:
            value = rng.randint(0, 9)
            inner = str(value)
        text = f"( {text} {inner} )"
        values.append(value)
    values.sort()
    middle = len(values) // 2
    median = values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) // 2
    value = {"[MAX": values[-1], "[MIN": values[0], "[MED": median, "[SM": sum(values) % 10}[operator]
    return f"( {text} ] )", value


def write_listops(folder, train=40, validation=30, test=30, seed=0):
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("train", train), ("val", validation), ("test", test)):
        lines = ["Source\tTarget"] + ["%s\t%d" % expression(rng) for _ in range(rows)]
        (folder / f"basic_{name}.tsv").write_text("\r\n".join(lines) + "\r\n")
    return folder


def words(rng, most=40):
    return bytes(rng.choice(b"abcdefghij ,.\xc3\xa9") for _ in range(rng.randint(1, most)))


def write_text(folder, each=20, seed=0):
    """aclImdb as a folder: `each` reviews a class and split."""
    rng = random.Random(seed)
    for split in ("train", "test"):
        for sentiment in ("neg", "pos"):
            place = folder / "aclImdb" / split / sentiment
            place.mkdir(parents=True)
            for number in range(each):
                (place / f"{number}_{rng.randint(1, 10)}.txt").write_bytes(words(rng))
    return folder / "aclImdb"


def pack(folder, archive):
    """The folder as a .tar.gz, members in an order of no meaning."""
    with tarfile.open(archive, "w:gz") as tar:
        for file in sorted(folder.rglob("*"), key=lambda path: path.name):
            if file.is_file():
                content = file.read_bytes()
                info = tarfile.TarInfo(file.relative_to(folder.parent).as_posix())
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return archive


def write_image(folder, each=20, seed=0):
    rng = random.Random(seed)
    place = folder / "cifar-10-batches-bin"
    place.mkdir(parents=True)
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        (place / f"{name}.bin").write_bytes(b"".join(
            bytes([rng.randrange(10)]) + rng.randbytes(3072) for _ in range(each)))
    return place


def write_retrieval(folder, train=40, validation=20, test=20, seed=0):
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("train", train), ("eval", validation), ("test", test)):
        lines = [b"%d.0\tid%d\tid%d\t%s\t%s" % (rng.randrange(2), i, i + 1, words(rng), words(rng)) for i in range(rows)]
        (folder / f"new_aan_pairs.{name}.tsv").write_bytes(b"\n".join(lines) + b"\n")
    return folder


def write_pathfinder(folder, count=40, side=32, seed=0):
    rng = random.Random(seed)
    place = folder / f"pathfinder{side}" / "curv_contour_length_14"
    (place / "metadata").mkdir(parents=True)
    for batch in range(2):
        (place / "imgs" / str(batch)).mkdir(parents=True)
        lines = []
        for k in range(count // 2):
            pixels = bytes(rng.choice((0, 0, rng.randrange(256))) for _ in range(side * side))
            (place / "imgs" / str(batch) / f"sample_{k}.png").write_bytes(png(pixels, side))
            lines.append(f"imgs/{batch} sample_{k}.png {k} {rng.randrange(2)} 1.0 14 4 2 0.5 1 1")
        (place / "metadata" / f"{batch}.npy").write_text("\n".join(lines) + "\n")
    return place


WRITERS = {"listops": write_listops, "text": write_text, "retrieval": write_retrieval, "image": write_image,
           "pathfinder": write_pathfinder}
