#!/usr/bin/env python3
"""Files stay short: over 400 lines is said, over 700 fails. Usage: file_length.py [ROOT]"""

import os
import sys

import tree

SOFT, HARD = 400, 700
EXEMPT = ("tests/reference/",)  # the PyTorch model that results are compared with, kept as one importable file a subject
SOURCES = (".h", ".cpp", ".cu", ".py", ".sh", ".cmake", "CMakeLists.txt")


def check(root):
    """(problems, remarks)"""
    problems, remarks = [], []
    for path in tree.files(root):
        if path.endswith(SOURCES) and not path.startswith(EXEMPT):
            lines = tree.read(root, path).count("\n")
            if lines > HARD:
                problems.append(f"{path}: {lines} lines, at most {HARD}")
            elif lines > SOFT:
                remarks.append(f"{path}: {lines} lines; consider a cut at {SOFT}")
    return problems, remarks


if __name__ == "__main__":
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
    found, remarked = check(root)
    print("\n".join(found + remarked) or f"no file is longer than {SOFT} lines")
    sys.exit(1 if found else 0)
