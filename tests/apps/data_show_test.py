"""lra-data show on every task: texts and ids, drawings and PNG files. python3 data_show_test.py PROGRAM [options]."""

import os
import pty
import re
import subprocess

import data_support
import task_data
from data_support import DataTest, read_png, run

ASCII = " .:-=+*#%@"
CLEAN = {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "PATH": os.environ.get("PATH", "")}
CIFAR = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def shown_text(content):
    return "".join(chr(b) if 0x20 <= b < 0x7F and b != 0x5C else f"\\x{b:02x}" for b in content)


def shade(level, shades):
    return shades[0 if level < 32 else -(-level * (len(shades) - 1) // 255)]


def greys_of_half_blocks(text):
    """Pixels of a drawing in 24-bit greys, a list a row."""
    rows = []
    for line in text.splitlines():
        upper, lower, fore, back = [], [], None, None
        for ground, level, block in re.findall("\x1b\\[([34])8;2;(\\d+);\\2;\\2m|(\u2580)", line):
            if block:
                upper.append(fore)
                lower.append(back)
            elif ground == "3":
                fore = int(level)
            else:
                back = int(level)
        rows += [upper, lower]
    return rows


class ShowTest(DataTest):
    def test_text(self):
        folder = task_data.write_text(self.folder, each=3)
        for file in (folder / "test").glob("*/*"):
            file.unlink()
        (folder / "test" / "neg" / "7_2.txt").write_bytes(b"B\xc3\xa9 \\ bad\n")
        (folder / "test" / "pos" / "7_9.txt").write_bytes(b"")
        output = self.succeeds("show", "text", folder, "--count", "9")
        self.assertEqual(output, "test 0\n  label   0 (negative)\n  length  10 tokens\n"
                                 "  text    B\\xc3\\xa9 \\x5c bad\\x0a\n  ids     67 196 170 33 93 33 99 98 101 11\n"
                                 "test 1\n  label   1 (positive)\n  length  0 tokens\n  text    \n  ids    \n")
        cut = self.succeeds("show", "text", folder, "--max-length", "2")
        self.assertIn("  length  2 tokens, cut from 10\n  text    B\\xc3\n  ids     67 196\n", cut)

    def test_retrieval(self):
        folder = task_data.write_retrieval(self.folder)
        fields = (folder / "new_aan_pairs.eval.tsv").read_bytes().split(b"\n")[2].split(b"\t")
        output = self.succeeds("show", "retrieval", folder, "--split", "validation", "--index", "2")
        lines = ["validation 2", f"  label   {fields[0].decode()[0]} ({'un' if fields[0] == b'0.0' else ''}related)"]
        for name, text in (("first ", fields[3]), ("second", fields[4])):
            lines += [f"  {name}  {len(text)} tokens", "  text    " + shown_text(text),
                      "  ids     " + " ".join(str(b + 1) for b in text)]
        self.assertEqual(output, "\n".join(lines) + "\n")
        cut = self.succeeds("show", "retrieval", folder, "--max-length", "1", "--split", "train")
        self.assertEqual(len(re.findall(r"1 tokens(, cut from \d+)?\n", cut)), 2)

    def test_image(self):
        folder = task_data.write_image(self.folder, each=4)
        rows = data_support.read_image(folder)
        for split, index in (("train", 17), ("validation", 1), ("test", 3)):
            label, pixels = rows[split][index]
            output = self.succeeds("show", "image", folder, "--split", split, "--index", index, "--draw", "24bit")
            head, drawing = output.split("(black pixels are padding)\n")
            real = sum(level > 0 for level in pixels)
            self.assertEqual(head, f"{split} {index}\n  label   {label} ({CIFAR[label]})\n"
                                   f"  length  1024 tokens, {real} of them real ")
            self.assertEqual(sum(greys_of_half_blocks(drawing), []), pixels)
        shifted = self.succeeds("show", "image", folder, "--split", "test", "--index", 3, "--draw", "24bit",
                                "--pixel-tokens", "shifted")
        self.assertEqual(shifted.split("tokens\n")[1], drawing)
        cut = self.succeeds("show", "image", folder, "--max-length", "32", "--draw", "24bit")
        self.assertIn("length  32 tokens, cut from 1024", cut)
        self.assertEqual(sum(greys_of_half_blocks(cut), []), rows["test"][0][1][:32] + [0] * 992)

    def test_shades(self):
        folder = task_data.write_pathfinder(self.folder)
        pixels = data_support.read_pathfinder(folder)["test"][0][1]
        for style, shades in (("ascii", ASCII), ("unicode", " \u2591\u2592\u2593\u2588")):
            output = self.succeeds("show", "pathfinder", folder, "--draw", style)
            drawing = output.split("padding)\n")[1].split("\n")[:-1]
            self.assertEqual(drawing, ["".join(2 * shade(level, shades) for level in pixels[32 * y:32 * y + 32])
                                       for y in range(32)])
        # Half as wide, each character stands for a pixel and the one below; then for 2 x 4 pixels.
        for width in (32, 16):
            step = 32 // width
            small = self.succeeds("show", "pathfinder", folder, "--draw", "ascii", "--width", width)
            drawing = small.split("padding)\n")[1].split("\n")[:-1]
            wanted = []
            for y in range(0, 32, 2 * step):
                line = ""
                for x in range(0, 32, step):
                    block = [pixels[32 * v + u] for v in range(y, y + 2 * step) for u in range(x, x + step)]
                    line += shade(int((sum(block) / len(block) + max(block)) / 2 + 0.5), ASCII)
                wanted.append(line)
            self.assertEqual(drawing, wanted)
        for width in (1, 7, 31):
            for style in ("ascii", "24bit", "256"):
                text = self.succeeds("show", "pathfinder", folder, "--draw", style, "--width", width)
                bare = re.sub("\x1b\\[[0-9;]*m", "", text.split("padding)\n")[1]).split("\n")[:-1]
                self.assertEqual(set(map(len, bare)), {width})

    def test_what_a_terminal_gets(self):
        folder = task_data.write_image(self.folder, each=4)
        for change, mark in (({}, "\x1b[38;5;"), ({"COLORTERM": "truecolor"}, "\x1b[38;2;"),
                             ({"TERM": "dumb"}, "\u2588\u2588"), ({"NO_COLOR": "1"}, "\u2588\u2588"),
                             ({"LC_ALL": "C"}, "@@")):
            main, side = pty.openpty()
            process = subprocess.Popen([data_support.PROGRAM, "show", "image", folder], stdout=side,
                                       env={**CLEAN, **change})
            os.close(side)
            output = b""
            try:
                while part := os.read(main, 65536):
                    output += part
            except OSError:  # the end of a terminal's output
                pass
            os.close(main)
            self.assertEqual(process.wait(timeout=60), 0)
            self.assertIn(mark, output.decode(), change)
        for change, mark in (({}, "\u2588\u2588"), ({"LC_ALL": "C", "COLORTERM": "truecolor"}, "@@")):
            output = self.succeeds("show", "image", folder, env={**CLEAN, **change})
            self.assertIn(mark, output)
            self.assertNotIn("\x1b", output)

    def test_png_files(self):
        folder = task_data.write_pathfinder(self.folder / "set")
        rows = data_support.read_pathfinder(folder)["train"]
        out = self.folder / "des images" / "new"
        output = self.succeeds("show", "pathfinder", folder, "--split", "train", "--index", 3, "--count", 2,
                               "--out", out, "--scale", 3)
        self.assertEqual(sorted(os.listdir(out)), ["pathfinder-train-3.png", "pathfinder-train-4.png"])
        self.assertIn(f"  file    {out}/pathfinder-train-4.png\n", output)
        for index in (3, 4):
            width, height, pixels = read_png(out / f"pathfinder-train-{index}.png")
            self.assertEqual((width, height), (96, 96))
            self.assertEqual(pixels, [rows[index][1][y // 3 * 32 + x // 3] for y in range(96) for x in range(96)])
        self.fails(2, "pathfinder-train-3.png: exists already; --force", "show", "pathfinder", folder, "--split",
                   "train", "--index", 3, "--out", out)
        self.succeeds("show", "pathfinder", folder, "--split", "train", "--index", 3, "--out", out, "--force")
        self.assertEqual(read_png(out / "pathfinder-train-3.png")[:2], (256, 256))

    def test_png_sheet(self):
        folder = task_data.write_pathfinder(self.folder / "set")
        rows = data_support.read_pathfinder(folder)["train"]
        sheet = self.folder / "sheet.png"
        show = ("show", "pathfinder", folder, "--split", "train", "--count", 5, "--out", sheet, "--scale")
        output = self.succeeds(*show, 1)
        self.assertTrue(output.endswith(f"\n{sheet}\n"))
        width, height, pixels = read_png(sheet)
        self.assertEqual((width, height), (3 * 33 - 1, 2 * 33 - 1))
        for i in range(5):
            left, top = i % 3 * 33, i // 3 * 33
            part = [pixels[(top + y) * width + left + x] for y in range(32) for x in range(32)]
            self.assertEqual(part, rows[i][1])
        self.assertEqual({pixels[y * width + 32] for y in range(height)}, {96})
        before = sheet.read_bytes()
        self.fails(2, "sheet.png: exists already; --force", *show, 2)
        self.assertEqual(sheet.read_bytes(), before)
        self.succeeds(*show, 2, "--force", "--draw", "ascii")
        self.assertEqual(read_png(sheet)[:2], (2 * width, 2 * height))
        many = task_data.write_pathfinder(self.folder / "many", count=100)
        self.fails(2, "a PNG 18944 pixels wide is too large", "show", "pathfinder", many, "--count", 80, "--split",
                   "train", "--out", self.folder / "b.png", "--scale", 64)
        self.fails(1, "none", "show", "pathfinder", folder, "--out", self.folder / "none" / "a.png")
        self.assertFalse((self.folder / "none").exists())

    def test_past_the_last(self):
        folder = task_data.write_image(self.folder, each=4)
        self.fails(1, "train has 18 good rows; --index 18", "show", "image", folder, "--split", "train", "--index", 18)
        out = self.folder / "pictures"
        self.fails(1, "--index 4", "show", "image", folder, "--index", 4, "--out", out)
        self.assertFalse(out.exists())

    def test_bad_rows_are_told(self):
        folder = task_data.write_image(self.folder, each=4)
        (folder / "test_batch.bin").write_bytes(bytes([77]) + bytes(3072) + bytes(3073))
        done = run("show", "image", folder, "--draw", "none")
        self.assertEqual(done.returncode, 0)
        self.assertIn("left out: ", done.stderr)
        self.assertEqual(done.stdout, "test 0\n  label   0 (airplane)\n  length  1024 tokens, 0 of them real "
                                      "(black pixels are padding)\n")


if __name__ == "__main__":
    data_support.main()
