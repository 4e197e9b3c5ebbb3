#!/usr/bin/env python3
"""Holds every #include of the tree to the two tables of docs/architecture.md. Usage: include_rules.py [ROOT]"""

import os
import re
import sys

import tree

# Folder -> what it may include besides itself; None: anything.
FOLDERS = {
    "lib": (),
    "datasets": ("lib/util",),
    "results": ("lib/util",),
    "tasks": ("datasets", "results", "lib"),
    "apps": None,
    "benchmarks": None,
    "tests": None,
}
# Rooms of lib: each may include those of lower rank and itself.
ROOMS = {"util": 0, "tensor": 1, "ops": 2, "attention": 3, "model": 4, "device": 5, "training": 6, "diagnostics": 6}
# Headers of ops and kernels are the seam between backends: they carry no type of any of them.
NEUTRAL = ("lib/ops/", "lib/attention/")
BACKENDS = re.compile(r"(oneapi/|dnnl|tbb/|omp\.h|cuda|cublas)")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.M)
BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.S)


def includes(text):
    """(line, is quoted, target) of every #include outside block comments."""
    text = BLOCK_COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    return [(text.count("\n", 0, m.start(2)) + 1, m.group(1) == '"', m.group(2)) for m in INCLUDE.finditer(text)]


def allowed(source, target):
    """Whether the file `source` may include `target`; both are paths from the root."""
    folder, other = source.split("/")[0], target.split("/")[0]
    if FOLDERS.get(folder, ()) is None:
        return True
    if folder == "lib" and other == "lib":
        here, there = source.split("/")[1], target.split("/")[1]
        return here in ROOMS and there in ROOMS and (here == there or ROOMS[there] < ROOMS[here])
    return folder == other or any(target.startswith(may + "/") for may in FOLDERS.get(folder, ()))


def check(root):
    problems = []
    for source in tree.files(root):
        if not source.endswith((".h", ".cpp", ".cu")):
            continue
        folder = source.split("/")[0]
        if folder not in FOLDERS:
            problems.append(f"{source}: sources lie in one of {', '.join(FOLDERS)}")
            continue
        if folder == "lib" and source.split("/")[1] not in ROOMS:
            problems.append(f"{source}: no room of lib; the rooms are {', '.join(ROOMS)}")
            continue
        for line, quoted, target in includes(tree.read(root, source)):
            where = f"{source}:{line}"
            if target.split("/")[0] in FOLDERS and "/" in target:
                if not os.path.isfile(os.path.join(root, target)):
                    problems.append(f"{where}: includes {target}, which does not exist")
                elif not allowed(source, target):
                    problems.append(f"{where}: may not include {target} (tables of docs/architecture.md)")
            elif quoted and os.path.isfile(os.path.join(root, os.path.dirname(source), target)):
                problems.append(f'{where}: include "{target}" by its path from the root')
            if source.endswith(".h") and source.startswith(NEUTRAL) and BACKENDS.match(target):
                problems.append(f"{where}: a header of {source.rsplit('/', 1)[0]} carries no backend's type ({target})")
    return problems


if __name__ == "__main__":
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
    found = check(root)
    print("\n".join(found) or "every include follows the tables")
    sys.exit(1 if found else 0)
