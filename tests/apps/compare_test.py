"""lra-compare as a user runs it, on records made by hand: SCRIPT LRA-COMPARE RESULT-EXAMPLE
VALIDATE-RECORD COMPARISON-SCHEMA."""
import csv
import io
import json
import os
import re
import resource
import time
import unittest

from compare_support import CUBE, RECORD, CompareTest, sys


# Processor time of 2,000 records over that of parsing them in Python: 3.4 to 4.1 in a release build, whatever else ran.
MOST_UNITS = 15


class Compare(CompareTest):
    def test_a_table_that_fits_a_terminal(self):
        self.write_runs("softmax", [0.37, 0.36, 0.38])
        self.write_runs(CUBE, [0.41, 0.402, 0.424])
        self.write_runs("sigmoid", [0.37, 0.365, 0.371])
        done = self.run_program(".")
        self.assertEqual(done.stderr, "")
        lines = done.stdout.splitlines()
        self.assertLessEqual(max(map(len, lines)), 100)
        rows = {line.split()[0]: line for line in lines[3:6]}
        self.assertEqual(lines[3].split()[0], "softmax")
        self.assertIn("baseline", rows["softmax"])
        self.assertIn("37.00", rows["softmax"])
        self.assertIn("+4.20", rows[CUBE])
        self.assertIn("better", rows[CUBE])
        self.assertIn("within noise", rows["sigmoid"])
        self.assertNotIn("best", " ".join(lines[:6]))

    def test_markdown_csv_json_and_a_file(self):
        self.write_runs("softmax", [0.37, 0.36, 0.38])
        self.write_runs(CUBE, [0.41, 0.402, 0.424])
        self.assertIn("| polynomial:power=3,scale=16 | 3 | 41.20", self.run_program(".", "--format=markdown").stdout)
        rows = list(csv.DictReader(io.StringIO(self.run_program(".", "--format", "csv").stdout)))
        self.assertEqual([row["attention"] for row in rows], ["softmax", CUBE])
        self.assertAlmostEqual(float(rows[1]["test_accuracy"]), 0.412)
        self.assertEqual((rows[0]["p"], rows[1]["verdict"]), ("", "better"))
        document = self.json_of()
        self.assertEqual(document["schema"], "lra-comparison/1")
        versus = document["settings"][0]["cells"][1]["versus_baseline"]
        self.assertEqual((versus["test"], versus["degrees"], versus["verdict"]), ("paired t", 2, "better"))
        done = self.run_program(".", "--format", "json", "--output", "out.json")
        self.assertEqual(done.stdout, "")
        self.assertEqual(json.loads((self.folder / "out.json").read_text()), document)

    def test_what_cannot_be_read_is_named_and_left_out(self):
        self.write("softmax", 0, 0.37)
        broken = self.write("softmax", 1, 0.37)
        broken.write_text(broken.read_text()[:-40])
        other = self.write("softmax", 2, 0.37, change=lambda r: r.update(schema="lra-result/9"))
        foreign = self.write("softmax", 3, 0.37)
        foreign.write_text("[1, 2]")
        done = self.run_program(".")
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 3, lines)
        for path, reason in ((broken, "not JSON"), (other, "lra-result/9"), (foreign, "want a JSON object")):
            own = [line for line in lines if path.parent.name in line]
            self.assertEqual(len(own), 1, lines)
            self.assertIn(reason, own[0])
            self.assertIn(path.parent.name, done.stdout)
        self.assertEqual(len(self.json_of()["left_out"]), 3)

    def test_recipes_data_and_protocols_stay_apart(self):
        self.write("softmax", 0, 0.37)
        self.write("softmax", 1, 0.9, change=lambda r: r["recipe"].update(steps=7))
        self.write("softmax", 2, 0.8, change=lambda r: r["data"]["splits"]["test"].update(hash="fedcba9876543210"))
        self.write("softmax", 3, 0.7, change=lambda r: r["protocol"].update(validation="test split"))
        settings = self.json_of()["settings"]
        self.assertEqual(sorted(s["cells"][0]["test_accuracy"]["mean"] for s in settings), [0.37, 0.7, 0.8, 0.9])
        text = self.run_program(".").stdout
        for field in ("recipe.steps 7", "data.test \"fedcba9876543210\"", "protocol.validation \"test split\""):
            self.assertIn(field, " ".join(text.split()))

    def test_one_seed_diverged_runs_and_chance(self):
        self.write("softmax", 0, 0.37)
        self.write(CUBE, 0, 0.175)

        def diverge(record):
            record.update(status="diverged", error="the loss is not finite")
            record["metrics"]["best"].update(test_accuracy=None)

        self.write(CUBE, 1, 0.9, change=diverge)
        self.write("sigmoid", 0, 0.9, change=diverge)
        text = self.run_program(".").stdout
        self.assertIn("one seed", text)
        self.assertRegex(text, r"17\.50c")
        self.assertIn(f"{CUBE}: in no mean: seed 1 diverged", text)
        cells = {cell["attention"]: cell for cell in self.json_of()["settings"][0]["cells"]}
        self.assertIsNone(cells["sigmoid"]["test_accuracy"]["mean"])
        self.assertEqual(cells["sigmoid"]["without"], ["seed 0 diverged"])
        self.assertEqual(cells["softmax"]["interval_kind"], "Wilson, test rows")

    def test_tasks_beside_each_other(self):
        for task in ("text", "listops"):
            self.write_runs("softmax", [0.6, 0.62], task)
        self.write_runs(CUBE, [0.6, 0.64], "text")
        lines = self.run_program(".").stdout.splitlines()
        self.assertEqual(lines[1].split(), ["attention", "listops", "text", "average"])
        self.assertEqual(lines[2].split(), ["softmax", "61.00", "61.00", "61.00"])
        self.assertEqual(lines[3].split(), [CUBE, "-", "62.00", "-"])
        self.assertEqual([setting["task"] for setting in self.json_of("--task", "text")["settings"]], ["text"])

    def test_baselines(self):
        self.write_runs(CUBE, [0.37, 0.36, 0.38])
        self.write_runs("sigmoid", [0.2, 0.21, 0.23])
        self.assertIn("No completed run of softmax", self.run_program(".").stdout)
        self.assertIn("worse", self.run_program(".", "--baseline", CUBE).stdout)
        self.assertIn("there are", self.run_program(".", "--baseline", "relu", expect=1).stderr)

    def test_published_figures_stand_apart_with_their_source(self):
        self.write("softmax", 0, 0.37)
        self.write("softmax", 0, 0.37, "text")
        text = self.run_program(".", "--published").stdout
        self.assertIn("== Published: arXiv 2102.03902", text)
        self.assertIn("Figures: from memory", text)
        self.assertRegex(text, r"Nystromformer +37\.15 +65\.52 +51\.3")  # the average is ours
        self.assertNotIn("Table 3 (Image test", text)
        rows = self.json_of("--published")["published"]
        self.assertTrue(all(row["listops"] is not None or row["text"] is not None for row in rows))
        self.assertIn("## Published", self.run_program(".", "--published", "--format", "markdown").stdout)
        self.run_program(".", "--published", "--format", "csv", expect=2)

    def test_forged_figures_stop_nothing(self):
        self.write_runs("softmax", [0.3, 0.31])
        self.write_runs("sigmoid", [1e308, -1.0])
        self.write("a\nb\x1b[31m|c", 0, 1.0, change=lambda r: r["metrics"]["best"].update(test_examples=2**63 - 1))
        self.write("relu", 0, 0.3, change=lambda r: r["metrics"]["best"].update(test_examples=-5))
        self.write("tanh", 0, 0.3, change=lambda r: r["task"].update(classes=0))
        self.write("gelu", 0, 0.3, "a task\nof its own", change=lambda r: r.update(recipe={"name": 7}, norms=[1, {"step": "x"}]))
        for form in ("text", "markdown", "csv", "latex", "json", "html"):
            text = self.run_program(".", "--format", form).stdout
            self.assertNotIn("\x1b", text)
            self.assertIn("seed 1 has no test accuracy" if form in ("text", "json", "html") else "softmax", text)
        self.run_program(".", "--published")

    def test_paths(self):
        one = self.write("softmax", 0, 0.37)
        self.write("softmax", 1, 0.38)
        self.write_runs("sigmoid", [0.4])
        document = self.json_of(one, one.parent, "./")
        self.assertEqual(document["left_out"], [])
        self.assertEqual(sum(len(cell["runs"]) for cell in document["settings"][0]["cells"]), 3)
        pattern = self.run_program("listops-softmax*", "--format", "csv").stdout
        self.assertEqual(len(pattern.splitlines()), 2)
        os.rename(one, one.parent / "a,b.json")
        self.assertIn("37.00", self.run_program(one.parent / "a,b.json").stdout)

    def test_wrong_options_and_nothing_to_compare(self):
        self.write("softmax", 0, 0.37)
        for options in ([], [".", "--format", "pdf"], [".", "--task", "chess"], [".", "--colour"],
                        [".", "--allow-mixed", "--format", "csv"], [".", "--allow-mixed", "--format", "json"]):
            self.assertEqual(len(self.run_program(*options, expect=2).stderr.splitlines()), 1, options)
        self.assertIn("want text, markdown, csv, latex, json, html", self.run_program(".", "--format", "pdf", expect=2).stderr)
        for options in (["missing"], ["missing*"], [".", "--task", "image"], [".", "--output", "no/such/folder.txt"]):
            self.assertEqual(len(self.run_program(*options, expect=1).stderr.splitlines()), 1, options)
        self.assertIn("Examples:", self.run_program("--help").stdout)
        self.assertIn("commit", self.run_program("--version").stdout)

    def test_settings_side_by_side_are_marked(self):
        self.write_runs("softmax", [0.37, 0.36])
        self.write_runs("softmax", [0.47, 0.46], change=lambda r: r["recipe"].update(steps=7))
        self.assertNotIn("side by side", self.run_program(".").stdout)
        text = self.run_program(".", "--allow-mixed").stdout
        table = text[text.index("side by side"):text.index("\n\n")]
        ids = [setting["id"] for setting in self.json_of()["settings"]]
        for id, mean in zip(ids, [cell["cells"][0]["test_accuracy"]["mean"] for cell in self.json_of()["settings"]]):
            self.assertRegex(table, rf"softmax +{id} +2 +{100 * mean:.2f} ")
            self.assertRegex(table, rf"{id}: recipe nystromformer; recipe.steps (7|5000)")
        self.assertNotIn("better", table)
        self.assertNotIn("41.50", text)  # the mean over both

    def test_averages_are_withheld_with_a_word(self):
        self.write_runs("softmax", [0.6, 0.62], "text")
        self.write_runs("softmax", [0.17, 0.18])
        self.write_runs(CUBE, [0.6, 0.64], "text")
        text = self.run_program(".").stdout
        self.assertRegex(text, r"softmax +17\.50c +61\.00 +39\.25c")
        self.assertIn(f"{CUBE}: no average, no completed run on listops", text)

    def test_why_there_is_no_relative_time(self):
        self.write_runs("softmax", [0.6, 0.62])
        self.write_runs(CUBE, [0.6, 0.64], change=lambda r: r["environment"].update(commit="0000000", threads=7))
        self.assertIn(f"{CUBE}: no relative time, differs from the baseline's runs in commit, threads",
                      " ".join(self.run_program(".").stdout.split()))

    def test_times_of_other_machines_and_trees_are_withheld(self):
        self.write_runs("softmax", [0.6, 0.62])
        self.write_runs(CUBE, [0.6, 0.64], change=lambda r: r["environment"].update(dirty=True))
        text = " ".join(self.run_program(".").stdout.split())
        self.assertIn(f"{CUBE}: no ms/sample", text)
        self.assertIn(f"{CUBE}: no relative time, built with uncommitted changes", text)
        rows = list(csv.DictReader(io.StringIO(self.run_program(".", "--format", "csv").stdout)))
        self.assertEqual((rows[1]["ms_per_sample"], rows[1]["ms_per_sample_withheld_for"]), ("", "uncommitted changes"))
        self.assertNotEqual(rows[0]["ms_per_sample"], "")
        cell = self.json_of()["settings"][0]["cells"][1]
        self.assertEqual((cell["ms_per_sample"], cell["ms_per_sample_runs"]), (None, 0))

    def test_pipes_and_huge_objects_stop_nothing(self):
        self.write_runs("softmax", [0.6, 0.62])
        (self.folder / "pipe").mkdir()
        os.mkfifo(self.folder / "pipe" / "result.json")
        huge = self.write(CUBE, 0, 0.6)
        huge.write_text(json.dumps(RECORD | {"recipe": {f"field{i}": i for i in range(5000)}}))
        done = self.run_program(".")
        self.assertEqual(len(done.stderr.splitlines()), 2, done.stderr)
        self.assertIn("result.json: not a regular file", done.stderr)
        self.assertIn("an object of more than 4096 keys", done.stderr)

    def test_two_thousand_records(self):
        """Four cells of 500 runs, with histories and norms. What counts is processor time over that of parsing the same in
        Python, so that neither a slow nor a busy machine fails and ten times the work does."""
        norms = [{"step": step, "layer": layer, "head": head, "frobenius_mean": 1.5, "jacobian": 2.5, "score_gradient": 1e-3,
                  "frobenius_per_sqrt_n": 0.5, "max_score": 3.0}
                 for step in (2500, 5000) for layer in (0, 1) for head in (0, 1)]
        attentions = ("softmax", CUBE, "sigmoid", "relu")
        record = RECORD | {"history": RECORD["history"][:1] * 100, "norms": norms}
        text = json.dumps(record)
        for i in range(2000):
            folder = self.folder / "many" / str(i)
            folder.mkdir(parents=True)
            (folder / "result.json").write_text(text.replace('"seed": 0', f'"seed": {i // 4}', 1).replace(
                f'"spec": "{RECORD["attention"]["spec"]}"', f'"spec": "{attentions[i % 4]}"', 1))

        def children():
            usage = resource.getrusage(resource.RUSAGE_CHILDREN)
            return usage.ru_utime + usage.ru_stime
        before, start = children(), time.process_time()
        for _ in range(2000):
            json.loads(text)
        unit = time.process_time() - start
        done = self.run_program("many")
        seconds = children() - before
        for attention in attentions:
            self.assertRegex(done.stdout, rf"\n{re.escape(attention)}\s+500 ")
        most = MOST_UNITS if "Release build" in self.run_program("--version").stdout else 10 * MOST_UNITS
        self.assertLess(seconds, most * unit, f"{seconds:.2f} s, {seconds / unit:.1f} times the calibration")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
