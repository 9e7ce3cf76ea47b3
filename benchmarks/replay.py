"""Time a whole replay (declarations and wiring, parsed) against PyDriller's bare traversal of the same repository.

    python benchmarks/replay.py [--framework openrlhf] [--repo openrlhf=PATH] [--runs 3]

Every figure is a whole process, the median of several runs. PyDriller writes into the repository that it
reads, so it is given a copy. Without PyDriller installed only the replay is timed.
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PYDRILLER = """
import sys
from pydriller import Repository
n = 0
for commit in Repository(sys.argv[1]).traverse_commits():
    for f in commit.modified_files:
        n += len(f.source_code or "")
print(n)
"""


def timed(command: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def median(runs: list[tuple[float, float]]) -> tuple[float, float]:
    return statistics.median(w for w, _ in runs), statistics.median(c for _, c in runs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", default="openrlhf")
    parser.add_argument("--repo", action="append", default=[], metavar="NAME=PATH", help="default: the store of landed sync")
    parser.add_argument("--runs", type=int, default=3)
    a = parser.parse_args()
    from landed.cli.build import store_home

    repos = [x for r in a.repo for x in ("--repo", r)]
    path = next((r.partition("=")[2] for r in a.repo), str(store_home() / f"{a.framework}.git"))
    with tempfile.TemporaryDirectory() as folder:
        replay = [
            sys.executable, "-m", "landed", "replay", a.framework, *repos, "--no-cache", "--out", f"{folder}/out", "--workers", "1",
            "--allow-unmapped",
        ]  # fmt: skip
        copy = Path(folder) / "copy.git"
        other = importlib.util.find_spec("pydriller") is not None
        if other:
            shutil.copytree(path, copy)
            subprocess.run(["git", f"--git-dir={copy}", "config", "core.bare", "true"], check=True)
        ours, theirs = [], []
        for _ in range(a.runs):  # by turns: a machine that others use is slow for both
            ours.append(timed(replay))
            if other:
                theirs.append(timed([sys.executable, "-c", PYDRILLER, str(copy)]))
        wall, cpu = median(ours)
        print(f"landed replay {a.framework}, cold, one process: {wall:.2f} s wall, {cpu:.2f} s CPU (median of {a.runs})")
        if not other:
            print("PyDriller is not installed: make bench")
            return 0
        wall2, cpu2 = median(theirs)
        print(f"PyDriller {a.framework}, traversal only: {wall2:.2f} s wall, {cpu2:.2f} s CPU (median of {a.runs})")
        print(f"ratio: {wall2 / wall:.1f} x wall, {cpu2 / cpu:.1f} x CPU")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
