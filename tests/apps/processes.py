"""Processes that a test has started, as /proc shows them."""
import pathlib


def state_and_parent(stat):
    """"S", 123 of a file /proc/PID/stat; None where the process is gone."""
    try:
        words = stat.read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return words[0], int(words[1])


def alive(pid):
    found = state_and_parent(pathlib.Path(f"/proc/{pid}/stat"))
    return found is not None and found[0] != "Z"


def children(parent):
    """Ids of the living programs of ours (lra-…) that `parent` has started."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        known = state_and_parent(stat)
        if known is None or known[0] == "Z" or known[1] != parent:
            continue
        try:
            name = (stat.parent / "comm").read_text()
        except OSError:
            continue
        if name.startswith("lra-"):
            found.append(int(stat.parent.name))
    return found
