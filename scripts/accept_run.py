#!/usr/bin/env python3
"""Copies the record of a finished run into results/runs, where records lie that the project vouches for.

    scripts/accept_run.py RUN_FOLDER...

result.json and metrics.jsonl go to results/runs/<task>/<recipe>/<attention>/seed-<n>; paths of the machine they come from
are cut to their last part. A record that is there already is replaced.
"""
import argparse
import json
import pathlib
import re
import sys

RUNS = pathlib.Path(__file__).resolve().parent.parent / "results" / "runs"


def last_part(path):
    return pathlib.PurePath(path).name if "/" in path else path


def accept(folder):
    file, metrics = folder / "result.json", folder / "metrics.jsonl"
    try:
        record, lines = json.loads(file.read_text()), metrics.read_bytes()
    except OSError as error:
        sys.exit(f"accept_run.py: {error.filename}: {error.strerror}; want the folder of a finished run")
    except ValueError as error:
        sys.exit(f"accept_run.py: {file}: not JSON: {error}")
    if not isinstance(record, dict) or record.get("schema") != "lra-result/1":
        sys.exit(f"accept_run.py: {file}: not a record of schema lra-result/1")
    if record["status"] != "completed":
        sys.exit(f"accept_run.py: {file}: the run is {record['status']}, want completed")
    if record["environment"]["dirty"]:
        sys.exit(f"accept_run.py: {file}: the program was built from changed files; want one of a commit as it is")
    record["data"]["source"] = last_part(record["data"]["source"])
    if record["data"]["cache"]:
        record["data"]["cache"] = last_part(record["data"]["cache"])
    record["command"] = [last_part(word) for word in record["command"]]
    slug = re.sub(r"[^a-z0-9.]+", "-", record["attention"]["spec"].replace("+", "-plus-"))  # as AttentionSpec::slug
    target = RUNS / record["task"]["name"] / record["recipe"]["name"] / slug / f"seed-{record['seed']}"
    target.mkdir(parents=True, exist_ok=True)
    (target / "result.json").write_text(json.dumps(record, indent=2) + "\n")
    (target / "metrics.jsonl").write_bytes(lines)
    print(target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=pathlib.Path, metavar="RUN_FOLDER")
    for folder in parser.parse_args().folders:
        accept(folder)


if __name__ == "__main__":
    main()
