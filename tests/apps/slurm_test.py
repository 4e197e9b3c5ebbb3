"""lra-suite --launcher slurm against a Slurm of its own on this machine: SCRIPT FOLDER-OF-PROGRAMS.

Needs root and Debian's slurmctld, slurmd, slurm-client and munge. Where they are missing or can't start the test says so
and is skipped (exit code 77).
"""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from task_data import write_listops, write_text

SUITE = pathlib.Path(sys.argv[1]) / "lra-suite"
GRID = ["--tasks", "listops,text", "--attention", "softmax", "--attention", "polynomial:power=1,scale=16", "--attention",
        "sigmoid", "--dim", "16", "--hidden", "16", "--max-length", "64", "--batch-size", "4", "--warmup", "10",
        "--eval-every", "0", "--launcher", "slurm", "--threads", "1"]
CONFIGURATION = """
ClusterName=lra
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
MpiDefault=none
KillWait=5
SchedulerParameters=sched_interval=1,bf_interval=1
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Cluster:
    """munged, slurmctld and slurmd in a folder, on free ports."""

    def __init__(self, folder):
        self.folder, self.processes = folder, []
        (folder / "state").mkdir()
        (folder / "spool").mkdir()
        folder.chmod(0o755)
        ports = []
        for _ in range(2):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                ports.append(free.getsockname()[1])
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        config = folder / "slurm.conf"
        config.write_text(CONFIGURATION.format(host=socket.gethostname().split(".")[0], folder=folder,
                                               controller=ports[0], node=ports[1]))
        self.environment = dict(os.environ, SLURM_CONF=str(config))
        self.start("munged", "--foreground", "--force", "--key-file", key, "--socket", folder / "munge.socket",
                   "--pid-file", folder / "munged.pid", "--log-file", folder / "munged.log", "--seed-file",
                   folder / "munged.seed")
        self.wait_for((folder / "munge.socket").exists, 10)
        self.start("slurmctld", "-D", "-c")
        self.start("slurmd", "-D")
        self.wait_for(lambda: "idle" in self.slurm("sinfo", "--noheader", "--format=%T"), 30)

    def start(self, *words):
        self.processes.append(subprocess.Popen([str(word) for word in words], env=self.environment,
                                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def slurm(self, *words):
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else ""

    def wait_for(self, condition, seconds):
        end = time.time() + seconds
        while not condition():
            if time.time() > end:
                raise TimeoutError("it did not happen")
            time.sleep(0.1)

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


class SlurmTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="lra-slurm-"))
        write_listops(cls.folder / "data/listops")
        write_text(cls.folder / "data/text")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def suite(self, *options, expect=0):
        done = subprocess.run([str(SUITE), *GRID, "--data", str(self.folder / "data"), "--out", str(self.folder / "runs"),
                               *options], env=CLUSTER.environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def status(self, *options):
        return self.suite(*options, "--status").stdout

    def records(self):
        return [json.loads(path.read_text()) for path in self.folder.rglob("result.json")]

    def test_an_array_runs_a_grid_to_its_end(self):
        options = ("--steps", "5000")
        done = self.suite(*options)
        self.assertIn("of 6 tasks", done.stdout)
        self.assertIn("nothing to submit", self.suite(*options).stdout)  # all are in the queue
        CLUSTER.wait_for(lambda: " running " in self.status(*options), 60)
        self.assertIn(" queued ", self.status(*options))

        # A task is told to make room: it saves, and is queued again.
        running = CLUSTER.slurm("squeue", "--noheader", "--array", "--states=RUNNING", "--format=%i").split()
        folder = self.folder / "runs/listops/nystromformer/softmax/seed-0"
        CLUSTER.wait_for(lambda: (folder / "metrics.jsonl").exists(), 60)
        CLUSTER.slurm("scancel", "--batch", "--signal=TERM", running[0])
        CLUSTER.wait_for(lambda: running[0] in CLUSTER.slurm("squeue", "--noheader", "--array", "--states=PENDING",
                                                              "--format=%i").split(), 60)
        record = json.loads((folder / "result.json").read_text())
        self.assertEqual(record["status"], "interrupted")

        def finished():
            # Slurm lets a task that was put back wait two minutes.
            CLUSTER.slurm("scontrol", "update", f"JobId={running[0]}", "StartTime=now")
            return "6 cells: 6 done" in self.status(*options)
        CLUSTER.wait_for(finished, 240)
        records = self.records()
        self.assertEqual([record["status"] for record in records], ["completed"] * 6)
        self.assertEqual(sorted(record["resumed"] > 0 for record in records), [False] * 5 + [True])
        self.assertIn("nothing to submit", self.suite(*options).stdout)

    def test_what_sbatch_refuses(self):
        done = self.suite("--steps", "20", "--seeds", "7", "--sbatch", "--partition=nosuch", expect=1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("partition", done.stderr)


if __name__ == "__main__":
    missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch", "squeue") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        print(f"SKIPPED: needs root and {' '.join(missing) or 'nothing else'}")
        sys.exit(77)
    place = pathlib.Path(tempfile.mkdtemp(prefix="lra-cluster-"))
    try:
        CLUSTER = Cluster(place)
    except TimeoutError:
        print("SKIPPED: Slurm does not start here")
        sys.exit(77)
    try:
        sys.argv = sys.argv[:1] + ["-v"] + sys.argv[2:]
        result = unittest.main(exit=False).result
    finally:
        CLUSTER.stop()
        shutil.rmtree(place, ignore_errors=True)
    sys.exit(0 if result.wasSuccessful() else 1)
