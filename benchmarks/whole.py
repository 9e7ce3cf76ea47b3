"""Time the whole job: cold replay of all frameworks, a second run with nothing new, 50 new commits, and one answer.

    python benchmarks/whole.py --repo verl=PATH --repo verl-recipe=PATH ... [--runs 3] [--new-in trl]

Whole processes, medians; memory is the largest sum of proportional shares over the process tree, sampled in a run of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LANDED = [sys.executable, "-m", "landed"]


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    out = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the process may end while it is looked at
            out += [q for p in task.read_text().split() for q in tree(int(p))]
    return out


def pss(pid: int) -> int:
    """KiB of memory of one process, shared pages divided among their users."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


def run(command: list[str], watch: bool = False) -> tuple[float, int]:
    """Wall seconds of a command, and its peak in MiB if watched (watching slows it down)."""
    begin = time.perf_counter()
    proc = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = 0
    while watch and proc.poll() is None:
        peak = max(peak, sum(pss(p) for p in tree(proc.pid)))
        time.sleep(0.1)
    if proc.wait():
        raise SystemExit(f"{' '.join(command)}: exit code {proc.returncode}")
    return time.perf_counter() - begin, peak // 1024


def report(title: str, command: list[str], runs: int) -> None:
    wall = [run(command)[0] for _ in range(runs)]
    _, peak = run(command, watch=True)
    print(f"{title}: {statistics.median(wall):.2f} s (min {min(wall):.2f}, max {max(wall):.2f}), peak {peak} MiB", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repo", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--new-in", default="trl", help="repository (of the framework of that name) that gets 50 new commits")
    a = parser.parse_args()
    repos = [x for r in a.repo for x in ("--repo", r)]
    with tempfile.TemporaryDirectory() as folder:
        out = ["--out", f"{folder}/out"]
        report("cold, nothing kept", [*LANDED, "replay", *repos, *out, "--no-cache"], a.runs)
        kept = ["--cache", f"{folder}/cache"]
        print(f"cold, facts kept: {run([*LANDED, 'replay', *repos, *out, *kept])[0]:.2f} s (once)", flush=True)
        report("nothing new", [*LANDED, "replay", *repos, *out, *kept], a.runs)
        source = next((r.partition("=")[2] for r in a.repo if r.startswith(f"{a.new_in}=")), "")
        if source:
            clone, git = f"{folder}/clone.git", ["git", f"--git-dir={folder}/clone.git"]
            subprocess.run(["git", "clone", "-q", "--bare", "--shared", source, clone], check=True)
            line = subprocess.run(
                [*git, "rev-list", "--first-parent", "HEAD"], check=True, capture_output=True, text=True
            ).stdout.split()
            subprocess.run([*git, "update-ref", "refs/heads/bench", line[50]], check=True)
            subprocess.run([*git, "symbolic-ref", "HEAD", "refs/heads/bench"], check=True)
            moved = [x if not x.startswith(f"{a.new_in}=") else f"{a.new_in}={clone}" for x in repos]
            walls = []
            for _ in range(a.runs):
                subprocess.run([*git, "update-ref", "refs/heads/bench", line[50]], check=True)
                (Path(folder) / "cache" / f"llm_rl-{a.new_in}.sqlite").unlink(missing_ok=True)
                run([*LANDED, "replay", *moved, *out, *kept])
                subprocess.run([*git, "update-ref", "refs/heads/bench", line[0]], check=True)
                walls.append(run([*LANDED, "replay", *moved, *out, *kept])[0])
            print(
                f"50 new commits in {a.new_in}, all frameworks: {statistics.median(walls):.2f} s (median of {a.runs})", flush=True
            )
        subprocess.run([*LANDED, "can", "gspo", "--snapshot", f"{folder}/out"], check=True, stdout=subprocess.DEVNULL)
        report("landed can gspo", [*LANDED, "can", "gspo", "--snapshot", f"{folder}/out"], 9)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
