#!/usr/bin/env python3
"""Every path, program and preset that README.md and docs/ name exists. Usage: docs_names.py [ROOT]

Names are looked for in `code`, in fenced blocks and in links. `<name>` and `*` stand for anything that exists, {a,b} for
each of several. What a user's own commands write is not looked for: see OUTPUTS.
"""

import fnmatch
import json
import os
import re
import sys

import tree

OUTPUTS = ("build/", "runs/", "data/")
FENCE = re.compile(r"^```.*?^```", re.S | re.M)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
PROGRAM = re.compile(r"^lra-[a-z]+$")
PRESET = re.compile(r"--preset[ =]([\w-]+)")


def braces(word):
    """a{b,c}d -> abd, acd"""
    match = re.search(r"\{([^{}]*,[^{}]*)\}", word)
    if not match:
        return [word]
    return [w for part in match.group(1).split(",") for w in braces(word[:match.start()] + part + word[match.end():])]


def exists(pattern, known):
    pattern = re.sub(r"<[^>]*>", "*", pattern).rstrip("/")
    return any(fnmatch.fnmatchcase(path, pattern) for path in known)


def words(text):
    """Words of code, with commas inside braces kept together."""
    for part in FENCE.findall(text) + CODE.findall(FENCE.sub("", text)):
        for word in re.findall(r"(?:\{[^{}]*\}|[^\s,;:=()\"'|`])+", part):
            yield word.rstrip(".").removeprefix("./")


def check(root):
    files = tree.files(root)
    folders = {"/".join(f.split("/")[:n]) for f in files for n in range(1, f.count("/") + 1)}
    known = set(files) | folders
    tops = {f.split("/")[0] for f in files if "/" in f}
    cmake = "\n".join(tree.read(root, f) for f in files if f.endswith("CMakeLists.txt"))
    programs = set(re.findall(r"lra_program\(\s*([\w-]+)", cmake))
    presets = set()
    if "CMakePresets.json" in known:
        for key, entries in json.loads(tree.read(root, "CMakePresets.json")).items():
            if key.endswith("Presets"):
                presets |= {e["name"] for e in entries if not e.get("hidden")}

    problems = []
    for page in files:
        if not (page == "README.md" or (page.startswith("docs/") and page.endswith(".md"))):
            continue
        text = tree.read(root, page)
        for word in words(text):
            for name in braces(word):
                if PROGRAM.match(name) and name not in programs:
                    problems.append(f"{page}: there is no program {name}")
                top = name.split("/")[0]
                is_path = ("/" in name and top in tops) or re.fullmatch(r"[A-Z]\w*\.(md|json|txt)", name)
                if is_path and not name.startswith(OUTPUTS) and not exists(name, known):
                    problems.append(f"{page}: {name} does not exist")
        for target in LINK.findall(FENCE.sub("", text)):
            if "://" not in target:
                path = os.path.normpath(os.path.join(os.path.dirname(page), target)).replace(os.sep, "/")
                if path not in known:
                    problems.append(f"{page}: the link to {target} leads nowhere")
        for preset in PRESET.findall(text):
            if preset not in presets:
                problems.append(f"{page}: there is no preset {preset}")
    if "README.md" not in known:
        problems.append("README.md is missing")
    return problems


if __name__ == "__main__":
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
    found = check(root)
    print("\n".join(found) or "every name in README.md and docs/ exists")
    sys.exit(1 if found else 0)
