"""lra-listops killed, interrupted and resumed: the result is that of a run that was never stopped, bit for bit."""
import json
import os
import random
import signal
import subprocess
import time
import unittest

import listops_support as support
from listops_support import ListopsTest, TINY, comparable, lines_of, sha, wait_for

# Checkpoints at every step, so that kills fall into every part of writing them.
OPTIONS = [*TINY, "--steps", "60", "--warmup", "6", "--eval-every", "7", "--log-every", "3", "--progress", "none",
           "--checkpoint-every", "0", "--attention", "polynomial:power=3,scale=16", "--seed", "3"]


class Resume(ListopsTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.whole = cls.folder / "whole"
        begin = time.time()
        subprocess.run([support.PROGRAM, "--data", str(cls.data), *OPTIONS, "--out", str(cls.whole)], check=True,
                       capture_output=True)
        cls.seconds = time.time() - begin

    def start(self, out, *options):
        return subprocess.Popen(self.command(*options, "--out", out), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, cwd=self.folder)

    def finish(self, out):
        """Resumes until the run is done; every option comes from the folder."""
        done = self.run_program("--resume", "--out", out)
        self.assertEqual(self.record(out)["status"], "completed")
        return done

    def test_killed_at_random_moments(self):
        rng = random.Random(20)
        kills = 0
        for run in range(100):  # how many kills fall into a run depends on the machine's load
            if run >= 20 and kills >= 20:
                break
            out = self.out(f"killed-{run}")
            options = OPTIONS
            # One to three kills a run.
            for _ in range(rng.randint(1, 3)):
                process = self.start(out, *options, "--resume")
                try:
                    process.wait(timeout=rng.uniform(0.01, 1.0) * self.seconds)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    kills += 1
                process.communicate()
                self.assertIn(process.returncode, (0, -signal.SIGKILL))
                if (out / "state.json").exists():
                    options = ["--progress", "none"]
                if (out / "result.json").exists():
                    self.record(out)  # valid at any moment
            done = self.start(out, *options, "--resume")
            _, error = done.communicate()
            self.assertEqual(done.returncode, 0, error)
            self.assert_same_run(self.whole, out)
        self.assertGreaterEqual(kills, 20)

    def stop(self, out, number, at=None, times=1):
        process = self.start(out, *OPTIONS)
        metrics = out / "metrics.jsonl"
        self.assertTrue(wait_for(lambda: metrics.exists() and (at or '"step":12,') in metrics.read_text(), process),
                        "the run ended before it could be stopped")
        for _ in range(times):
            process.send_signal(number)
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, error)
        return error

    def test_sigterm_and_sigint_save_and_go_on(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            out = self.out(f"signal-{int(number)}")
            error = self.stop(out, number)
            self.assertIn("--resume", error.splitlines()[-1])
            record = self.record(out)
            self.assertEqual(record["status"], "interrupted")
            state = json.loads((out / "state.json").read_text())["state"]
            self.assertGreaterEqual(state["step"], 12)
            self.assertLess(state["step"], 60)
            if number == signal.SIGINT:  # as a version wrote it that kept no command
                document = json.loads((out / "state.json").read_text())
                del document["state"]["command"]
                (out / "state.json").write_text(json.dumps(document))
            self.finish(out)
            self.assert_same_run(self.whole, out)
            again = self.record(out)
            self.assertEqual(again["resumed"], 1)
            self.assertNotIn("--resume", record["command"])
            if number == signal.SIGTERM:
                self.assertEqual(again["command"], record["command"])
            else:
                self.assertIn("--resume", again["command"])

    def test_signals_do_not_disturb_running_products(self):
        # A handler on top of a matrix kernel once corrupted the heap, in one stop of three.
        rng = random.Random(5)
        for turn in range(12):
            out = self.out(f"products-{turn}")
            process = self.start(out, "--batch-size", "256", "--limit-eval", "5", "--progress", "none")
            self.assertTrue(wait_for(lambda: (out / "state.json").exists(), process))
            time.sleep(rng.uniform(0.0, 0.3))
            process.send_signal(signal.SIGTERM)
            _, error = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, error)

    def test_a_second_signal_ends_at_once(self):
        # One step of this batch takes minutes: the first signal would wait for its end.
        process = self.start(self.out(), *TINY, "--batch-size", "1048576", "--progress", "none")
        self.assertTrue(wait_for(lambda: (self.out() / "result.json").exists(), process))
        time.sleep(0.5)  # the step begins a moment after the record is there
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        self.assertIsNone(process.poll(), "the first signal lets the step end")
        process.send_signal(signal.SIGTERM)  # so soon it is the same one, passed on by a script
        time.sleep(0.2)
        self.assertIsNone(process.poll(), "a SIGTERM that came twice counts once")
        process.send_signal(signal.SIGINT)
        begin = time.time()
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertLess(time.time() - begin, 5)
        self.assertEqual(json.loads((self.out() / "state.json").read_text())["state"]["step"], 0)

    def test_max_time_ends_with_130(self):
        for part in (3, 6, 12, 24):  # the machine may be faster now than when the whole run was timed
            out = self.out(f"max-time-{part}")
            sittings = 0
            while True:
                done = subprocess.run(self.command(*(OPTIONS if sittings == 0 else []), "--resume", "--out", out,
                                                   "--max-time", f"{max(0.1, self.seconds / part):.3f}s"),
                                      capture_output=True, text=True, cwd=self.folder)
                if done.returncode == 0:
                    break
                self.assertEqual(done.returncode, 130, done.stderr)
                self.assertEqual(self.record(out)["status"], "interrupted")
                sittings += 1
                self.assertLess(sittings, 100)
            self.assert_same_run(self.whole, out)
            self.assertEqual(self.record(out)["resumed"], sittings)
            if sittings > 0:
                return
        self.fail("no run was long enough for its --max-time")

    def test_a_finished_run_says_so(self):
        before = sha(self.whole / "result.json")
        done = self.run_program("--resume", "--out", self.whole)
        self.assertIn("finished", done.stderr)
        self.assertIn("best", done.stdout)
        self.assertEqual(sha(self.whole / "result.json"), before)

    def test_resume_without_a_run_starts_one(self):
        self.run_program(*OPTIONS, "--resume", "--out", self.out())
        self.assert_same_run(self.whole, self.out())
        self.assertEqual(self.record(self.out())["resumed"], 0)

    def test_second_writer_is_refused(self):
        process = self.start(self.out(), *OPTIONS, "--set", "steps=1000000")
        try:
            self.assertTrue(wait_for(lambda: (self.out() / "result.json").exists(), process))
            for extra in ([], ["--resume"], ["--force"]):
                line = self.refused(2, *OPTIONS, *extra, "--set", "steps=1000000", "--out", self.out())
                self.assertIn(str(self.out()), line)
            self.assertIsNone(process.poll(), "the first one was not disturbed")
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()
        self.assertEqual(process.returncode, 130)

    def test_damaged_checkpoint_and_changed_data(self):
        out = self.out()
        self.stop(out, signal.SIGTERM)
        file = out / "checkpoint-last.safetensors"
        whole = file.read_bytes()
        file.write_bytes(whole[:-50])
        self.refused(1, "--resume", "--out", out, names=[file])
        file.write_bytes(whole)
        changed = self.data / "basic_train.tsv"
        text = changed.read_bytes()
        try:
            changed.write_bytes(b"\r\n".join(text.split(b"\r\n")[:-3]) + b"\r\n")
            self.refused(1, "--resume", "--out", out, names=["data"])
        finally:
            changed.write_bytes(text)
        self.finish(out)
        self.assert_same_run(self.whole, out)

    def test_lines_past_the_checkpoint_are_cut(self):
        out = self.out()
        self.stop(out, signal.SIGTERM)
        with open(out / "metrics.jsonl", "a") as file:
            file.write('{"split":"train","step":59,"loss":0,"accuracy":0}\n{"split":"test","step":7,"loss":0}\n{"spl')
        self.finish(out)
        self.assert_same_run(self.whole, out)

    def test_log_every_and_threads_may_change(self):
        out = self.out()
        self.stop(out, signal.SIGTERM)
        self.run_program("--resume", "--out", out, "--log-every", "1", "--threads", "3", "--checkpoint-every", "60",
                         "--progress", "plain", "--max-time", "1h")
        for name in ("checkpoint-last.safetensors", "checkpoint-best.safetensors"):
            self.assertEqual(sha(self.whole / name), sha(out / name))
        self.assertEqual([l for l in comparable(out / "metrics.jsonl") if l["split"] != "train"],
                         [l for l in comparable(self.whole / "metrics.jsonl") if l["split"] != "train"])


if __name__ == "__main__":
    support.main()
