"""lra-bench as a user runs it: SCRIPT LRA-BENCH."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PROGRAM = sys.argv[1]
SMALL = ["--length", "40", "--batch-size", "3", "--threads", "2", "--seconds", "0.05", "--repeats", "2"]


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)


class Bench(unittest.TestCase):
    def test_a_step_as_json(self):
        for mode, linear, attention in (("train", 6, 14), ("eval", 2, 4)):
            done = run(mode, *SMALL, "--attention", "polynomial:power=3,scale=16", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            row = json.loads(done.stdout)
            for key in ("ms_per_sample", "ms_per_sample_min", "gflops", "peak_gflops", "share_of_peak", "peak_rss_bytes"):
                self.assertGreater(row[key], 0, key)
            self.assertLess(row["share_of_peak"], 1)
            self.assertGreaterEqual(row["repeats"], 2)
            # 2 layers of 4 E² + 2 E·hidden weights a token, and the head's; 2 heads of 32 a layer.
            weights = 2 * (4 * 64 * 64 + 2 * 64 * 128)
            wanted = linear * (40 * weights + 64 * 128 + 128 * 10) + attention * 40 * 40 * 32 * 2 * 2
            self.assertEqual(row["flops_per_sample"], wanted)
            self.assertEqual(row["dense_flops_per_sample"], wanted)

    def test_every_task(self):
        for task, documents, classes in (("listops", 1, 10), ("text", 1, 2), ("retrieval", 2, 2), ("image", 1, 10),
                                         ("pathfinder", 1, 2)):
            done = run("eval", *SMALL, "--task", task, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            row = json.loads(done.stdout)
            self.assertEqual((row["task"], row["length"]), (task, 40))
            weights = 2 * (4 * 64 * 64 + 2 * 64 * 128)
            head = 64 * 128 + 128 * classes if documents == 1 else 256 * 128 + 128 * classes
            wanted = documents * (2 * 40 * weights + 4 * 40 * 40 * 32 * 2 * 2) + 2 * head
            self.assertEqual(row["flops_per_sample"], wanted, task)

    def test_a_table_and_the_peak(self):
        done = run("train", *SMALL)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("softmax", done.stdout)
        done = run("peak", "--threads", "1", "--seconds", "0.05", "--json")
        peak = json.loads(done.stdout)
        self.assertGreater(peak["peak_gflops"], 0)
        if peak["instruction_set"] in ("avx512_bf16", "amx_bf16"):
            self.assertGreater(peak["bfloat16_peak_gflops"], 0)
            done = run("train", *SMALL, "--precision", "bfloat16", "--json")
            self.assertEqual(json.loads(done.stdout)["precision"], "bfloat16", done.stderr)
        else:
            self.assertIsNone(peak["bfloat16_peak_gflops"])

    def test_a_profile_books_most_of_the_time(self):
        done = run("train", *SMALL[2:], "--length", "300", "--profile", "--json")
        shares = json.loads(done.stdout)["phase_shares"]
        for phase in ("attention: products", "linear layers", "layer norms", "optimizer"):
            self.assertGreater(shares[phase], 0, phase)
        self.assertLessEqual(sum(shares.values()), 1.0)
        done = run("train", *SMALL, "--profile")
        self.assertIn("attention: products", done.stdout)
        self.assertNotIn("phase_shares", json.loads(run("train", *SMALL, "--json").stdout))

    def test_variants_beside_softmax(self):
        with tempfile.TemporaryDirectory() as folder:
            output, plot = pathlib.Path(folder) / "variants.json", pathlib.Path(folder) / "variants.svg"
            done = run("variants", "--quick", "--threads", "2", "--output", str(output), "--plot", str(plot))
            self.assertEqual(done.returncode, 0, done.stderr)
            document = json.loads(output.read_text())
            rows = {(row["attention"], row["length"]): row for row in document["rows"]}
            table = run("train", "--attention", "list").stdout.split("\n\n")[0].splitlines()
            listed = [line.split()[0] for line in table[1:-1]]  # between its head and +xsa
            self.assertIn("softmax", listed)
            for length in (128, 256):
                for name in (*listed, "polynomial:power=1,form=linear"):
                    row = rows[name, length]
                    if "error" in row:
                        continue
                    self.assertGreaterEqual(row["repeats"], 3)
                    for key in ("ms_per_sample", "ms_per_sample_min", "relative_time", "gflops", "peak_gflops",
                                "share_of_peak", "flops_per_sample", "dense_flops_per_sample", "peak_rss_bytes",
                                "scratch_bytes"):
                        self.assertGreater(row[key], 0, key)
                    self.assertLessEqual(row["ms_per_sample_min"], row["ms_per_sample"])
                    self.assertAlmostEqual(row["gflops"], row["flops_per_sample"] / row["ms_per_sample"] * 1e-6)
                    self.assertAlmostEqual(row["share_of_peak"], row["gflops"] / row["peak_gflops"])
                    self.assertIn(name, done.stdout)
                softmax = rows["softmax", length]
                self.assertEqual(softmax["dense_flops_per_sample"], softmax["flops_per_sample"])
                self.assertEqual((softmax["relative_flops"], softmax["relative_scratch"]), (1, 1))
                self.assertLess(rows["polynomial:power=1,form=linear", length]["relative_flops"], 1)
            svg = xml.etree.ElementTree.parse(plot).getroot()
            self.assertTrue(svg.tag.endswith("svg"))
            texts = {element.text for element in svg.iter() if element.tag.endswith("text")}
            self.assertLessEqual({"softmax", "polynomial", "128 tokens"}, texts)

    def test_variants_given(self):
        done = run("variants", "--lengths", "30,40", "--seconds", "0.02", "--repeats", "2", "--threads", "1",
                   "--batch-size", "3", "--attention", "polynomial:power=2,scale=sqrt", "--attention", "softmax",
                   "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(document["batch_size"], 3)
        self.assertEqual([(row["attention"], row["length"]) for row in document["rows"]],
                         [(name, length) for length in (30, 40)
                          for name in ("polynomial:power=2,scale=sqrt", "softmax")])

    def test_wrong_input_is_one_line(self):
        for name, arguments in {"want peak, train, eval, variants or norms": ["walk"],
                                "want cpu or cuda": ["train", "--backend", "tpu"],
                                "--backend: not with variants": ["variants", "--backend", "cuda"],
                                "tf32 with --backend cuda": ["train", "--precision", "tf32"],
                                "--profile: not with --backend cuda": ["train", "--backend", "cuda", "--profile"],
                                "--lengths": ["variants", "--lengths", "64,x"],
                                "--plot": ["train", "--plot", "x.svg"],
                                "--profile": ["variants", "--quick", "--profile"],
                                "hardmax": ["variants", "--quick", "--attention", "hardmax"],
                                "--threads": ["train", "--threads", "none"],
                                "--seconds": ["peak", "--seconds", "-1"],
                                "--length": ["train", "--length", "0"],
                                "softmux": ["train", *SMALL, "--attention", "softmux"],
                                "heads": ["train", *SMALL, "--heads", "3"],
                                "--precision": ["train", *SMALL, "--precision", "half"],
                                "--task": ["train", *SMALL, "--task", "chess"],
                                "unknown key": ["train", *SMALL, "--set", "power=2"]}.items():
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(name, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_help(self):
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        for option in ("--attention", "--length", "--dropout", "--json", "Examples"):
            self.assertIn(option, done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
