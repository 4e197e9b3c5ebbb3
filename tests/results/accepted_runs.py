"""The records in results/runs: SCRIPT VALIDATOR SCHEMA. Each fits the schema, is complete, agrees with its metrics.jsonl,
lies where its own contents say, and names no folder of the machine it was made on."""
import json
import pathlib
import re
import subprocess
import sys
import unittest

VALIDATOR, SCHEMA = sys.argv[1:3]
RUNS = pathlib.Path(__file__).resolve().parents[2] / "results" / "runs"
FILES = sorted(RUNS.rglob("result.json"))


class AcceptedRuns(unittest.TestCase):
    def test_there_are_some(self):
        self.assertTrue(FILES)

    def test_schema(self):
        done = subprocess.run([VALIDATOR, SCHEMA, *FILES], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_contents(self):
        for file in FILES:
            with self.subTest(str(file.relative_to(RUNS))):
                record = json.loads(file.read_text())
                self.assertEqual(record["status"], "completed")
                self.assertFalse(record["environment"]["dirty"])
                slug = re.sub(r"[^a-z0-9.]+", "-", record["attention"]["spec"].replace("+", "-plus-"))
                self.assertEqual(file.parent.relative_to(RUNS).parts,
                                 (record["task"]["name"], record["recipe"]["name"], slug, f"seed-{record['seed']}"))
                for word in [record["data"]["source"], record["data"]["cache"] or "", *record["command"]]:
                    self.assertNotIn("/", word)
                lines = [json.loads(line) for line in (file.parent / "metrics.jsonl").read_text().splitlines()]
                steps = [line["step"] for line in lines if line["split"] == "validation"]
                self.assertEqual(steps[-1], record["recipe"]["steps"])
                best = max((line for line in lines if line["split"] == "validation"), key=lambda l: l["accuracy"])
                self.assertEqual(record["metrics"]["best"]["step"], best["step"])
                self.assertEqual(record["metrics"]["best"]["validation_accuracy"], best["accuracy"])

    def test_norms_of_softmax(self):
        """Each row's squared norm s lies between 1/n and 1, and that of its Jacobian is at most s(1 - s)."""
        lines = [line for file in FILES for record in [json.loads(file.read_text())]
                 if record["attention"]["spec"] == "softmax" for line in record["norms"] or []]
        self.assertGreater(len(lines), 0)
        for line in lines:
            self.assertGreaterEqual(line["frobenius_mean"], 1 - 1e-6)
            self.assertLessEqual(line["frobenius_per_sqrt_n"], 1 + 1e-6)
            self.assertLessEqual(line["jacobian"], line["frobenius_mean"] * (1 + 1e-6))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
