"""Files of the tree that the house tests look at: what git tracks or would track, without build outputs."""

import os
import subprocess

OUTPUTS = {".git", "build", "runs", "data", "shared", "__pycache__"}


def files(root):
    """Paths relative to root, with / between folders, sorted."""
    try:
        listed = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root, capture_output=True, check=True).stdout
        paths = [p for p in os.fsdecode(listed).split("\0") if p]
        paths = [p for p in paths if os.path.isfile(os.path.join(root, p))]
    except (OSError, subprocess.CalledProcessError):
        paths = []
    if not paths:  # an exported tree without git
        for folder, folders, names in os.walk(root):
            folders[:] = [f for f in folders if f not in OUTPUTS]
            paths += [os.path.relpath(os.path.join(folder, n), root) for n in names]
    return sorted(p.replace(os.sep, "/") for p in paths if p.split("/")[0] not in OUTPUTS)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()
