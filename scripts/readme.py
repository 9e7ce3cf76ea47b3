"""Run the commands shown in the documentation and put their real output below them.

    python scripts/readme.py            rewrite README.md and docs
    python scripts/readme.py --check    exit 1 where the text differs from what the commands print

A block begins with ```console; each line that begins with `$ landed` is run on the shipped snapshot. A line `…`
in a block stands for the rest of a longer output: as many lines as stand before it are shown.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "docs/history.md"]
BLOCK = re.compile(r"```console\n(.*?)```", re.S)


def output(command: str) -> list[str]:
    """Lines printed by one documented command."""
    words = shlex.split(command, comments=True)
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False, cwd=ROOT)
    return (done.stdout + done.stderr).rstrip("\n").splitlines()


def render(block: str) -> str:
    """The block with every command's output made anew."""
    out: list[str] = []
    lines = block.rstrip("\n").splitlines()
    i = 0
    while i < len(lines):
        line = lines[i]
        i += 1
        out.append(line)
        if not line.startswith("$ landed"):
            continue
        shown = []
        while i < len(lines) and not lines[i].startswith("$ "):
            shown.append(lines[i])
            i += 1
        made = [x.rstrip() for x in output(line[2:])]
        if shown and shown[-1] == "…" and len(made) > len(shown) - 1:
            made = [*made[: max(len(shown) - 1, 1)], "…"]
        out += made
        if i < len(lines):
            while out and not out[-1]:
                out.pop()
    return "\n".join(out) + "\n"


def page(text: str) -> str:
    """A page with all of its blocks made anew."""
    return BLOCK.sub(lambda m: "```console\n" + render(m[1]) + "```", text)


def main() -> int:
    code = 0
    for name in PAGES:
        path = ROOT / name
        if not path.exists():
            continue
        old = path.read_text("utf-8")
        new = page(old)
        if old != new:
            if "--check" in sys.argv:
                print(f"{name}: not what its commands print; run python scripts/readme.py")
                code = 1
            else:
                path.write_text(new, "utf-8")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
