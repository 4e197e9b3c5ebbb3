"""lra-data as a user runs it, the command line and ListOps: python3 data_test.py PROGRAM [unittest options]."""

import hashlib
import os
import pathlib
import signal
import subprocess
import time

import data_support
from data_support import FIXTURES, DataTest, run

NAMES = ("basic_train.tsv", "basic_val.tsv", "basic_test.tsv")


def digests(folder):
    return [hashlib.sha256((pathlib.Path(folder) / name).read_bytes()).hexdigest() for name in NAMES]


def value(tokens):
    """Value of an expression, written apart from the program's own evaluator."""
    stack = []
    for token in tokens:
        if token != "]":
            stack.append(int(token) if token.isdigit() else token)
            continue
        arguments = []
        while isinstance(stack[-1], int):
            arguments.append(stack.pop())
        arguments.sort()
        n = len(arguments)
        stack.append({"[MAX": lambda: arguments[-1], "[MIN": lambda: arguments[0], "[SM": lambda: sum(arguments) % 10,
                      "[MED": lambda: (arguments[(n - 1) // 2] + arguments[n // 2]) // 2}[stack.pop()]())
    assert len(stack) == 1
    return stack[0]


class DataProgramTest(DataTest):
    def generate(self, name, *arguments):
        out = self.folder / name
        done = run("generate", "listops", "--out", out, "--train", 60, "--validation", 7, "--test", 5, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(os.listdir(out)), sorted(NAMES))
        return out

    def test_help_and_version(self):
        for arguments in (["--help"], ["-h"], ["generate", "--help"], ["check", "-h"], ["show", "--help"],
                          ["sources", "--help"]):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
            lines = done.stdout.rstrip("\n").split("\n")
            self.assertEqual(lines[-3], "Examples:", arguments)
            self.assertTrue(all(line.startswith("  lra-data ") for line in lines[-2:]), arguments)
            self.assertLessEqual(max(map(len, lines)), 110, arguments)
        text = run("generate", "--help").stdout
        for option, default in (("--train", "96000"), ("--validation", "2000"), ("--test", "2000"), ("--seed", "0"),
                                ("--threads", "0"), ("--force", "false")):
            self.assertRegex(text, option + r".*\(default: " + default + r"\)")
        for arguments in (["--version"], ["generate", "--version"]):
            done = run(*arguments)
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stdout, r"^lra-data \d+\.\d+\.\d+")

    def test_command_line_errors(self):
        out = self.folder / "out"
        for part, *arguments in (
                ("no command",),
                ("unknown command 'make'", "make"),
                ("no task", "generate"),
                ("unknown task 'chess'", "generate", "chess", "--out", out),
                ("--out DIR is needed", "generate", "listops"),
                ("--train 0", "generate", "listops", "--out", out, "--train", "0"),
                ("--test -1", "generate", "listops", "--out", out, "--test=-1"),
                ("--threads -2", "generate", "listops", "--out", out, "--threads=-2"),
                ("--train 12x: must be a whole number", "generate", "listops", "--out", out, "--train", "12x"),
                ("--seed -1: must be a whole number from 0", "generate", "listops", "--out", out, "--seed=-1"),
                ("trian", "generate", "listops", "--out", out, "--trian", "5"),
                ("one argument too many", "generate", "listops", "more", "--out", out),
                ("no PATH", "check", "listops"),
                ("no PATH", "show", "listops"),
                ("unknown task 'chess'; want listops, text, retrieval, image, pathfinder", "check", "chess", out),
                ("unknown task 'text'; want listops, pathfinder", "generate", "text", "--out", out),
                ("--train: is an option of generate listops", "generate", "pathfinder", "--out", out, "--train", "5"),
                ("--truth: is an option of generate pathfinder", "generate", "listops", "--out", out, "--truth"),
                ("--size 33: want 32, 64, 128, 256", "generate", "pathfinder", "--out", out, "--size", "33"),
                ("--level 10: want baseline, 9, 14", "generate", "pathfinder", "--out", out, "--level", "10"),
                ("--metadata xml: want text, npy", "generate", "pathfinder", "--out", out, "--metadata", "xml"),
                ("--count 0", "generate", "pathfinder", "--out", out, "--count", "0"),
                ("--size: task listops has one size only", "check", "listops", FIXTURES / "release", "--size", "64"),
                ("--level: task image has no levels", "show", "image", out, "--level", "9"),
                ("--pixel-tokens: task text has no pictures", "check", "text", out, "--pixel-tokens", "raw"),
                ("--pixel-tokens grey: want raw, shifted", "check", "image", out, "--pixel-tokens", "grey"),
                ("--validation test: want given", "check", "listops", FIXTURES / "release", "--validation", "test"),
                ("--limit -1", "check", "listops", FIXTURES / "release", "--limit=-1"),
                ("--threads 5000", "check", "listops", FIXTURES / "release", "--threads", "5000"),
                ("--draw: task listops has no pictures", "show", "listops", FIXTURES / "release", "--draw", "ascii"),
                ("--out: task text has no pictures", "show", "text", out, "--out", "a.png"),
                ("--draw crayon: want auto, 24bit", "show", "image", out, "--draw", "crayon"),
                ("--scale 0", "show", "image", out, "--scale", "0"),
                ("--out needs the name", "show", "image", out, "--out", ""),
                ("--split all", "show", "listops", FIXTURES / "release", "--split", "all"),
                ("--index -1", "show", "listops", FIXTURES / "release", "--index=-1"),
                ("--count 0", "show", "listops", FIXTURES / "release", "--count", "0"),
                ("--max-length -5", "check", "listops", FIXTURES / "release", "--max-length=-5"),
                ("too many", "sources", "listops", "text"),
                ("unknown task 'chess'", "sources", "chess")):
            self.fails(2, part, *arguments)
        self.assertFalse(out.exists())

    def test_generate_is_a_function_of_the_seed(self):
        one = self.generate("one", "--seed", 3, "--threads", 1)
        self.assertEqual(digests(one), digests(self.generate("five", "--seed", 3, "--threads", 5)))
        self.assertEqual(digests(one), digests(self.generate("default", "--seed", 3)))
        self.assertNotEqual(digests(one), digests(self.generate("other", "--seed", 4)))

    def test_generated_rows_are_right(self):
        out = self.generate("set")
        seen = set()
        for name, count in zip(NAMES, (60, 7, 5)):
            lines = (out / name).read_bytes().decode("ascii").split("\r\n")
            self.assertEqual(lines[0], "Source\tTarget")
            self.assertEqual(lines[-1], "")
            self.assertEqual(len(lines), count + 2)
            for line in lines[1:-1]:
                source, target = line.split("\t")
                tokens = [token for token in source.split(" ") if token not in "()"]
                self.assertEqual(source.count("("), source.count(")"))
                self.assertTrue(500 < len(tokens) < 2000)
                self.assertEqual(value(tokens), int(target))
                seen.add(source)
        self.assertEqual(len(seen), 72)
        done = run("check", "listops", self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for part in (str(out), "train: 60 rows", "validation: 7 rows", "test: 5 rows", "also in train   0 rows"):
            self.assertIn(part, done.stdout)

    def test_generate_does_not_overwrite(self):
        out = self.generate("set")
        before = digests(out)
        self.fails(2, "basic_train.tsv: exists already; --force", "generate", "listops", "--out", out, "--seed", 1)
        self.assertEqual(before, digests(out))
        self.generate("set", "--seed", 1, "--force")
        self.assertNotEqual(before, digests(out))

    def test_generate_where_nothing_can_be_written(self):
        (self.folder / "file").write_text("a file")
        self.fails(1, str(self.folder / "file"), "generate", "listops", "--out", self.folder / "file", "--train", 5)
        if os.geteuid() == 0:
            self.fails(1, "/proc/lra", "generate", "listops", "--out", "/proc/lra", "--train", 5)
        else:
            closed = self.folder / "closed"
            closed.mkdir(mode=0o500)
            self.fails(1, "Permission denied", "generate", "listops", "--out", closed, "--train", 5)

    def test_full_disk_leaves_nothing(self):
        # A limit on the size of a file stops the writer as a full disk does.
        out = self.folder / "set"
        done = subprocess.run(["sh", "-c", "ulimit -f 64; trap '' XFSZ; exec \"$@\"", "sh",
                               data_support.PROGRAM, "generate", "listops", "--out", out, "--train", "2000"],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("basic_train.tsv: cannot be written: File too large", done.stderr.splitlines()[-1])
        self.assertEqual(os.listdir(self.folder), [])

    def test_interrupt_leaves_nothing(self):
        for stop in (signal.SIGINT, signal.SIGTERM):
            out = self.folder / stop.name / "new" / "set"
            process = subprocess.Popen([data_support.PROGRAM, "generate", "listops", "--out", out,
                                        "--train", "99999999"],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            deadline = time.monotonic() + 60
            while not (out / "basic_test.tsv.partial").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            process.send_signal(stop)
            _, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, errors)
            self.assertIn("lra-data: interrupted", errors)
            self.assertEqual(os.listdir(self.folder), [])
        out = self.folder / "kept"
        out.mkdir()
        process = subprocess.Popen([data_support.PROGRAM, "generate", "listops", "--out", out, "--train", "100000000"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not (out / "basic_test.tsv.partial").exists():
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual((os.listdir(self.folder), os.listdir(out)), (["kept"], []))

    def test_check_reports_bad_rows(self):
        done = self.fails(1, "16 bad rows, the first basic_train.tsv:3 (wrong field count)", "check", "listops",
                          FIXTURES / "bad-rows")
        for part in ("train: 2 rows", "wrong field count: 3, the first basic_train.tsv:3",
                     "bad label: 3, the first basic_train.tsv:6", "unknown token: 4, the first basic_train.tsv:9",
                     "unbalanced expression: 5, the first basic_train.tsv:13",
                     "label is not the value: 1, the first basic_train.tsv:18", "also in train   1 rows"):
            self.assertIn(part, done.stdout)
        cut = run("check", "listops", FIXTURES / "small-lf", "--max-length", "4")
        self.assertEqual(cut.returncode, 0)
        self.assertRegex(cut.stdout, r"max 4\n  rows cut        1 \(50.0 %\)")

    def test_check_of_what_is_no_data(self):
        for part, path in (("no such file or folder", self.folder / "none"), ("no ListOps data", self.folder),
                           ("not ListOps data", FIXTURES / "release" / "basic_val.tsv"),
                           ("more than one ListOps set", FIXTURES),
                           ("basic_train.tsv:1: the header", FIXTURES / "empty"),
                           ("basic_train.tsv:1: the header", FIXTURES / "no-header"),
                           ("not one good training row", FIXTURES / "header-only"),
                           ("not one good training row", FIXTURES / "no-good-row")):
            self.fails(1, part, "check", "listops", path)
        (self.folder / "basic_val.tsv").write_text("Source\tTarget\n")
        self.fails(1, "basic_train.tsv is missing", "check", "listops", self.folder)

    def test_show(self):
        done = run("show", "listops", FIXTURES / "small-crlf", "--split", "train", "--index", 1, "--count", 5)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "train 1\n  label   3\n  value   3\n  length  8 tokens\n"
                                      "  tokens  [MED 4 [SM 8 9 5 ] ]\n  ids     13 5 14 9 10 6 15 15\n"
                                      "train 2\n  label   3\n  value   3\n  length  1 tokens\n"
                                      "  tokens  3\n  ids     4\n")
        cut = run("show", "listops", FIXTURES / "small-crlf", "--split", "train", "--index", 1, "--max-length", 3)
        self.assertEqual(cut.stdout, "train 1\n  label   3\n  value   3 (of the uncut expression)\n"
                                     "  length  3 tokens, cut from 8\n  tokens  [MED 4 [SM\n  ids     13 5 14\n")
        self.fails(1, "has 2 good rows; --index 2", "show", "listops", FIXTURES / "small-crlf", "--index", 2)
        bad = run("show", "listops", FIXTURES / "bad-rows", "--split", "train", "--index", 1)
        self.assertEqual(bad.returncode, 0)
        self.assertIn("left out: unknown token, 4 rows, the first basic_train.tsv:9\n", bad.stderr)

    def test_sources(self):
        done = run("sources")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for part in ("https://storage.googleapis.com/long-range-arena/lra_release.gz", "Apache 2.0", "basic_train.tsv",
                     "aclImdb_v1.tar.gz", "cifar-10-binary.tar.gz", "new_aan_pairs.train.tsv",
                     "curv_contour_length_14"):
            self.assertIn(part, done.stdout)
        for task in ("listops", "text", "retrieval", "image", "pathfinder"):
            self.assertRegex(done.stdout, rf"(?m)^{task}: ")
            part = run("sources", task).stdout
            self.assertIn(part.split("\n\n")[-1], done.stdout)
            for other in ("listops", "text", "retrieval", "image", "pathfinder"):
                self.assertEqual(f"\n{other}: " in "\n" + part, other == task)
            for word in ("Licence", "Layout"):
                self.assertIn(word, part)

    def test_closed_and_full_stdout(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([data_support.PROGRAM, "check", "listops", FIXTURES / "release"], stdout=writer,
                              stderr=subprocess.PIPE, text=True, timeout=60)
        os.close(writer)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^lra-data: cannot write to standard output.*\n$")
        if os.path.exists("/dev/full"):
            with open("/dev/full", "w") as full:
                done = subprocess.run([data_support.PROGRAM, "sources"], stdout=full, stderr=subprocess.PIPE, text=True,
                                      timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"^lra-data: cannot write to standard output.*\n$")


if __name__ == "__main__":
    data_support.main()
