"""LaTeX and HTML of lra-compare, and what it makes of damaged run folders: SCRIPT LRA-COMPARE RESULT-EXAMPLE
VALIDATE-RECORD COMPARISON-SCHEMA."""
import html.parser
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import unittest
import zlib

from compare_support import CUBE, RECORD, CompareTest, sys

HOSTILE = "a'b\"<script>alert(1)</script>&amp;{}$#_%^~\\|`touch pwned`'; system('touch pwned')"
VOID = {"meta", "img", "br", "wbr", "rect", "circle", "use", "path"}


class Page(html.parser.HTMLParser):
    """Tags with attributes, texts, and whether every tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.open, self.errors = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.errors.append(tag)

    def handle_data(self, data):
        self.texts.append(data)

    def named(self, name):
        return [attributes for tag, attributes in self.tags if tag == name]


def png(width, height, filling=0):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    rows = b"".join(b"\0" + os.urandom(width) if filling else b"\0" * (width + 1) for _ in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


def write_logs(record, norms=True):
    """What a run leaves beside its record."""
    lines = []
    for step in range(1, 101):
        lines.append({"split": "train", "step": step, "loss": 2.0 - step / 100, "accuracy": 0.3})
        if step % 20 == 0:
            lines.append({"split": "validation", "step": step, "loss": 1.9, "accuracy": step / 300, "examples": 50})
    (record.parent / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if norms:
        lines = [{"step": step, "layer": layer, "head": head, "frobenius_mean": 1.0 + layer + step / 10 + head}
                 for step in (20, 40, 60, 80, 100) for layer in (0, 1) for head in (0, 1)]
        (record.parent / "norms.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def write_predictions(record, right):
    rows = [{"index": i, "label": i % 3, "predicted": i % 3 if good else 7, "probability": 0.5} for i, good in enumerate(right)]
    (record.parent / "predictions-test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


class CompareReport(CompareTest):
    def report(self, *options, **how):
        done = self.run_program(".", "--format", "html", *options, **how)
        return Page(done.stdout), done

    def write_pair(self):
        records = self.write_runs("softmax", [0.37, 0.36, 0.38]) + self.write_runs(CUBE, [0.41, 0.402, 0.424])
        for record in records:
            write_logs(record)
        return records

    def test_one_file_that_loads_nothing(self):
        self.write_pair()
        page, done = self.report()
        self.assertEqual(done.stderr, "")
        self.assertEqual((page.errors, page.open), ([], []))
        self.assertEqual(page.named("html")[0]["lang"], "en")
        self.assertEqual(page.named("script") + page.named("link") + page.named("iframe"), [])
        for tag, attributes in page.tags:
            for name in attributes:
                self.assertFalse(name.startswith("on"), (tag, name))
            for name in ("src", "href", "xlink:href"):
                self.assertRegex(attributes.get(name, "#"), "^(#|data:image/png)", tag)
        self.assertNotIn("url(", done.stdout)
        ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
        self.assertEqual(len(ids), len(set(ids)))
        for attributes in page.named("a") + page.named("use"):
            self.assertIn((attributes.get("href") or attributes["xlink:href"])[1:], ids)

    def test_every_plot_has_its_table_and_every_table_its_headings(self):
        self.write_pair()
        page, done = self.report()
        plots = [attributes for attributes in page.named("svg") if attributes.get("role") == "img"]
        # Accuracy, two courses of training, speed, a norm in two layers and against accuracy.
        self.assertEqual(len(plots), 7)
        self.assertEqual(len(page.named("details")), 7)
        self.assertTrue(all(attributes["aria-label"] for attributes in plots))
        self.assertTrue(all(attributes.get("scope") in ("col", "row") for attributes in page.named("th")))
        self.assertEqual(len(page.named("caption")), len(page.named("table")))
        for colour in ("black", "white", "rgb("):
            self.assertNotRegex(done.stdout, rf"(stroke|fill|color)=['\"]{re.escape(colour)}")
        self.assertIn("var(--s1)", done.stdout)

    def test_the_summary_is_in_plain_words(self):
        self.write_pair()
        self.write_runs("sigmoid", [0.37, 0.365, 0.371])
        self.write("guess", 0, 0.17)
        page, done = self.report()
        summary = done.stdout[done.stdout.index("<h2>Summary"):done.stdout.index("<nav")]
        self.assertRegex(summary, rf"{CUBE} is better than softmax: \+4\.20 points, 95 % interval \[3\.\d, [45]\.\d\]")
        self.assertRegex(summary, r"Within the noise of softmax, so neither better nor worse: sigmoid \(−0\.13 points")
        self.assertIn("Not shown to be above chance (17.0 %): guess.", summary)
        self.assertRegex(summary, r"Not tested against softmax: guess \(−20\.00 points, one seed")
        self.assertNotRegex(summary, r"\bbest\b")

    def test_hostile_texts_stay_texts(self):
        for seed, accuracy in enumerate((0.37, 0.36)):
            self.write("softmax", seed, accuracy)
            write_logs(self.write(HOSTILE, seed, accuracy, change=lambda r: r["recipe"].update(name="</style>" + HOSTILE)))
        self.write("relu", 0, 0.4, task=HOSTILE)
        self.write("failed", 0, 0.4, change=lambda r: r.update(status="failed", error=HOSTILE + "\n<img src=x>"))
        page, done = self.report("--allow-mixed", "--baseline", HOSTILE)
        self.assertEqual((page.errors, page.open), ([], []))
        self.assertEqual(page.named("script") + page.named("img"), [])
        self.assertTrue(any(HOSTILE in text for text in page.texts))
        self.assertIn(f"A {HOSTILE[:38]}…", "".join(page.texts))  # in a plot
        self.assertFalse([path for path in self.folder.rglob("pwned")])

    def test_without_gnuplot_all_tables_are_there(self):
        self.write_pair()
        page, done = self.report(env={"PATH": str(self.folder)})
        self.assertEqual(done.stderr, "lra-compare: no plots: gnuplot is not installed (Debian: gnuplot-nox)\n")
        self.assertIn("gnuplot-nox", "".join(page.texts))
        self.assertEqual([a for a in page.named("svg") if a.get("role") == "img"], [])
        self.assertEqual([attributes for attributes in page.named("details") if "open" not in attributes], [])
        self.assertEqual(len(page.named("details")), 7)

    def test_a_gnuplot_that_fails_is_named(self):
        self.write_pair()
        fake = self.folder / "bin"
        fake.mkdir()
        (fake / "gnuplot").write_text("#!/bin/sh\necho 'out of ink' >&2\nexit 3\n")
        (fake / "gnuplot").chmod(0o755)
        page, done = self.report(env={"PATH": f"{fake}:{os.environ['PATH']}"})
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("gnuplot failed: out of ink", done.stderr)

    def fake_gnuplot(self, script, mode):
        fake = self.folder / "bin"
        fake.mkdir()
        (fake / "gnuplot").write_text(script)
        (fake / "gnuplot").chmod(mode)
        return fake

    def test_a_gnuplot_that_may_not_run_is_named(self):
        self.write_pair()
        page, done = self.report(env={"PATH": str(self.fake_gnuplot("#!/bin/sh\n", 0o644))})
        self.assertEqual(done.stderr, "lra-compare: no plots: gnuplot cannot be started: Permission denied\n")
        self.assertEqual(len(page.named("details")), 7)
        self.assertIn("cannot be started", "".join(page.texts))

    def test_a_gnuplot_that_hangs_is_asked_once(self):
        self.write_pair()
        fake = self.fake_gnuplot("#!/bin/sh\necho once >> asked\nexec sleep 1000 >&- 2>&-\n", 0o755)
        page, done = self.report(env={"PATH": f"{fake}:{os.environ['PATH']}"})
        self.assertEqual(done.stderr, 'lra-compare: plots are missing from "Test accuracy" on: gnuplot gave no answer within '
                                      "20 seconds\n")
        self.assertEqual((self.folder / "asked").read_text(), "once\n")

    def test_damaged_folders_are_named(self):
        records = self.write_pair()
        with open(records[0].parent / "metrics.jsonl", "a") as file:
            file.write('{"split": "train", "st\n[]\n')
        (records[1].parent / "metrics.jsonl").unlink()
        (records[2].parent / "norms.jsonl").write_text("\x00\n")
        (records[3].parent / "maps").mkdir()
        (records[3].parent / "maps" / "test-0.png").write_text("no picture")
        (records[4].parent / "result.json").write_text("{")
        page, done = self.report()
        text = "".join(page.texts)
        for path, words in ((records[0], "metrics.jsonl:106: not a line of this file (2 such in all"),
                            (records[1], "no metrics.jsonl"), (records[2], "norms.jsonl:1: not a line"),
                            (records[3], "not a PNG picture"), (records[4], "not JSON")):
            lines = [line for line in done.stderr.splitlines() if path.parent.name in line]
            self.assertEqual(len(lines), 1, (words, done.stderr))
            self.assertIn(words, lines[0])
            self.assertIn(words, text)
        self.assertTrue([a for a in page.named("svg") if a.get("role") == "img"])

    def test_maps_are_bounded(self):
        for i, record in enumerate(self.write_runs("softmax", [0.3]) + self.write_runs(CUBE, [0.3]) + self.write_runs("relu", [0.3])):
            write_logs(record)
            (record.parent / "maps").mkdir()
            for k in range(6 if i == 0 else 1):
                (record.parent / "maps" / f"test-{k}.png").write_bytes(png(2000, 2400, 1) if i else png(30, 30))
        page, done = self.report()
        self.assertEqual(len(page.named("img")), 5)  # four of six, one large one
        self.assertTrue(all(attributes["alt"] for attributes in page.named("img")))
        self.assertRegex(done.stderr, r"6 attention maps, the first 4 are shown\n.*left out, a report holds 8 MB")

    def test_scale_sweep(self):
        def cell(scale, length):
            def change(record):
                record["attention"].update(name="polynomial", options={"power": 3, "scale": scale, "gain": False})
                record["task"]["max_length"] = record["recipe"]["max_length"] = length
                record["data"]["splits"]["train"]["hash"] = f"{length:016x}"
            self.write_runs(f"polynomial:power=3,scale={scale}", [0.3, 0.32], change=change)
        cell("16", 500)
        self.assertNotIn("Scale sweep", self.report()[1].stdout)
        for scale, length in (("64", 500), ("16", 1000), ("64", 1000), ("sqrt", 1000)):
            cell(scale, length)
        page, done = self.report()
        section = done.stdout[done.stdout.index("Scale sweep by length"):]
        self.assertRegex(section, r"<text>500</text>[\s\S]*<text>1000</text>|<text>1000</text>[\s\S]*<text>500</text>")
        self.assertIn("Scales that are no number stand in the table only", section)
        self.assertEqual(section.count("<td>sqrt</td>"), 1)

    def test_sweeps_of_other_data_and_options_stay_apart(self):
        def cell(scale, data="0" * 16, more="", steps=5000):
            def change(record):
                record["attention"].update(name="polynomial", options={"power": 3, "scale": scale})
                record["recipe"].update(steps=steps)
                record["data"]["splits"]["train"]["hash"] = data
            self.write_runs(f"polynomial:power=3,scale={scale}{more}", [0.3, 0.32], change=change)
        for scale in ("16", "64"):
            cell(scale)
            cell(scale, data="1" * 16)
            cell(scale, more="+xsa")
            cell(scale, more=",causal=1")
            cell(scale, steps=7)
        section = self.report()[1].stdout
        section = section[section.index("Scale sweep by length"):section.index("How to read")]
        titles = re.findall("<h4>(.*)</h4>", section)
        self.assertEqual(len(titles), len(set(titles)), titles)
        self.assertEqual(len(titles), 4)
        for end in ("polynomial:power=3+xsa", "polynomial:power=3,causal=1", "polynomial:power=3, steps 5000",
                    "polynomial:power=3, steps 7"):
            self.assertTrue(any(title.endswith(end) for title in titles), (end, titles))
        length = RECORD["task"]["max_length"]
        self.assertIn(f"Length {length} has 2 settings, each with a curve of its own: {length} a is ", section)
        self.assertIn("data.train &quot;1111111111111111&quot;", section)
        self.assertRegex(section, f"<text>{length} b</text>")

    def test_curves_of_a_plot_differ(self):
        """Eight attentions with those of the first task, so that places in the whole report would repeat in the second."""
        for i in range(7):
            self.write(f"first{i}", 0, 0.3)
        for i in range(8):
            self.write("softmax" if i == 0 else f"second{i}" if i < 7 else "first0", 0, 0.6 - i / 100, "text")
        legend = self.report()[1].stdout.split('aria-label="Names in the plots">')[-1].split("</ul>")[0]
        self.assertEqual(legend.count("<li>"), 8)
        self.assertEqual(len(set(re.findall(r'stroke="var\(--s(\d)\)" stroke-width', legend))), 8)

    def test_long_courses_and_steps_not_in_common(self):
        records = self.write_runs("softmax", [0.37, 0.36]) + self.write_runs(CUBE, [0.41, 0.402])
        for record in records:
            lines = [{"split": "validation", "step": step, "loss": 1.9, "accuracy": 0.875 if step == 77 else 0.25, "examples": 50}
                     for step in range(1, 201)]
            if record == records[3]:
                lines = [line | {"step": line["step"] + 1000} for line in lines]
            (record.parent / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        page, done = self.report()
        self.assertIn(f"{CUBE}, validation accuracy: its runs were logged at different steps; the mean is drawn at the 0 of 400 "
                      "that all have, so there is no curve", done.stderr)
        self.assertIn("Of more than 60 points 60 at most, the first, the last and the highest among them.", done.stdout)
        for step, accuracy in ((1, "25.00"), (77, "87.50"), (200, "25.00")):
            self.assertIn(f'<th scope="row">{step}</th><td>{accuracy}</td>', done.stdout)

    def test_words_of_the_report(self):
        for record in self.write_runs("softmax", [0.37, 0.37]) + self.write_runs(CUBE, [0.41, 0.41]):
            write_logs(record)
            text = json.loads(record.read_text())
            text["norms"] = [{"step": 1, "layer": 0, "head": 0, "frobenius_mean": text["seed"] + 1.0}]
            record.write_text(json.dumps(text))
        page, done = self.report()
        self.assertIn("no spread", done.stdout)
        self.assertNotIn("One seed says nothing", done.stdout)
        self.assertRegex(done.stdout, r"Spearman&#39;s correlation .*n = 4\. Seeds of one attention are not independent")
        self.assertNotRegex(done.stdout, "Spearman[^<]*, p ")
        for name in ("ranks", "instructions", "backend"):
            self.assertIn(f'<th scope="col">{name}</th>', done.stdout)
        self.assertNotRegex(done.stdout, r"details \{ display: none")

    def test_mcnemar_of_equal_seeds(self):
        records = self.write_runs("softmax", [0.3]) + self.write_runs(CUBE, [0.3]) + self.write_runs("relu", [0.3])
        write_predictions(records[0], [True] * 10 + [False] * 20)
        write_predictions(records[1], [True] * 20 + [False] * 10)
        self.assertIn("no predictions-test.jsonl: relu seed 0", " ".join(self.run_program(".").stdout.split()))
        cells = {cell["attention"]: cell for cell in self.json_of()["settings"][0]["cells"]}
        test = {"seed": 0, "rows": 30, "only_here": 10, "only_baseline": 0, "p": 2 / 2**10, "p_holm": 2 / 2**10}
        self.assertEqual(cells[CUBE]["mcnemar"], [test])
        self.assertEqual((cells["relu"]["mcnemar"], cells[CUBE]["versus_baseline"]["verdict"]), ([], "untested"))
        write_predictions(records[2], [False] * 10 + [True] * 10 + [False] * 11)
        self.assertIn("rows are not those of the baseline: relu seed 0", " ".join(self.run_program(".").stdout.split()))
        (records[2].parent / "predictions-test.jsonl").write_text('{"index": 0, "label": 1}\n')
        self.assertIn("predictions-test.jsonl:1: want an object", " ".join(self.run_program(".").stdout.split()))

    def test_latex_compiles(self):
        if not shutil.which("pdflatex"):
            self.skipTest("no pdflatex (Debian: texlive-latex-recommended)")
        self.write_pair()
        self.write_runs("softmax", [0.6, 0.62], "text")
        self.write_runs(CUBE, [0.2, 0.21], "text")
        self.write_runs(HOSTILE + "é漢", [0.6, 0.64], change=lambda r: r["recipe"].update(name=HOSTILE, steps=7))
        self.run_program(".", "--format", "latex", "--published", "--allow-mixed", "--output", "tables.tex")
        (self.folder / "paper.tex").write_text("\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n"
                                               "\\input{tables.tex}\\end{document}\n")
        done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"], cwd=self.folder,
                              capture_output=True, text=True, errors="replace", timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:])
        self.assertTrue((self.folder / "paper.pdf").read_bytes().startswith(b"%PDF"))
        text = (self.folder / "tables.tex").read_text()
        self.assertIn("\\toprule", text)
        self.assertRegex(text, r"\\texttt\{softmax\} & 37\.00 & 61\.00 & 49\.00")
        self.assertRegex(text, r"41\.20\$\^\{\+\}\$")
        self.assertTrue(text.isascii())

    def test_full_disks_and_devices(self):
        self.write_pair()
        for form in ("text", "html"):
            with open("/dev/full", "w") as full:
                done = subprocess.run([sys.argv[1], ".", "--format", form], stdout=full, stderr=subprocess.PIPE, text=True,
                                      cwd=self.folder)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
            before = os.stat("/dev/full").st_rdev
            self.assertIn("No space left", self.run_program(".", "--format", form, "--output", "/dev/full", expect=1).stderr)
            self.assertEqual(os.stat("/dev/full").st_rdev, before)  # not replaced by a file

        def limited():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        (self.folder / "old.html").write_text("old")
        files = sorted(self.folder.iterdir())
        self.run_program(".", "--format", "html", "--output", "old.html", expect=1, preexec_fn=limited)
        self.assertEqual((self.folder / "old.html").read_text(), "old")
        self.assertEqual(sorted(self.folder.iterdir()), files)
        self.run_program(".", "--output", "no/folder.html", "--format", "html", expect=1)
        os.symlink("old.html", self.folder / "link.html")
        self.run_program(".", "--format", "html", "--output", "link.html")
        self.assertTrue((self.folder / "link.html").is_symlink())
        self.assertIn("</html>", (self.folder / "old.html").read_text())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
