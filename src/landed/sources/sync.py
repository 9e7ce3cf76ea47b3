"""Make and update bare partial clones, resumable: what a broken transfer brought whole is kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from landed.errors import SourceError
from landed.sources.git import Repo

#: Larger blobs are no sources; leaving them out makes a clone several times smaller.
BLOB_LIMIT = "1m"


def sync_one(url: str, target: Path) -> tuple[str, bool]:
    """Clone or update ``url`` at ``target``; returns the head and whether it was made now.

    The clone is made by ``init`` and ``fetch``, so that a run that was cut off is taken up by the next.
    """
    fresh = not (target / "HEAD").exists()
    if fresh:
        target.mkdir(parents=True, exist_ok=True)
        _git(f"--git-dir={target}", "init", "--bare")
    git_dir = f"--git-dir={target}"
    for key, value in (
        ("remote.origin.url", url),
        ("remote.origin.promisor", "true"),
        ("remote.origin.partialclonefilter", f"blob:limit={BLOB_LIMIT}"),
    ):
        _config(target, key, value)
    refs = "+refs/heads/*:refs/heads/*"
    _git(git_dir, "fetch", f"--filter=blob:limit={BLOB_LIMIT}", "--prune", "--tags", "--force", "origin", refs)
    subprocess.run(["git", git_dir, "symbolic-ref", "HEAD", _default_branch(git_dir)], check=True)
    return Repo(target).head(), fresh


def _git(git_dir: str, *args: str) -> None:
    progress = ["--progress"] if sys.stderr.isatty() and args[0] == "fetch" else ["--quiet"]
    env = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    if not shutil.which("git"):
        raise SourceError("git is not installed", mend="install git 2.30 or newer")
    done = subprocess.run(
        ["git", git_dir, args[0], *progress, *args[1:]], env=env, check=False, text=True, errors="replace",
        stderr=None if sys.stderr.isatty() else subprocess.PIPE, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        lines = (done.stderr or "").strip().splitlines()
        why = next((x for x in lines if x.startswith(("fatal:", "error:"))), lines[-1] if lines else "see above")
        raise SourceError(
            f"git {args[0]} failed: {why}",
            mend="check the address and the network; run `landed sync` again, what arrived whole is kept",
        )


def _config(target: Path, key: str, value: str) -> None:
    subprocess.run(["git", f"--git-dir={target}", "config", key, value], check=True)


def _default_branch(git_dir: str) -> str:
    """The remote's default branch; the remote is asked, since HEAD of a clone made by fetch is a guess."""
    done = subprocess.run(
        ["git", git_dir, "ls-remote", "--symref", "origin", "HEAD"], capture_output=True, text=True, check=False
    )
    for line in done.stdout.splitlines():
        if line.startswith("ref: "):
            return line.split()[1]
    raise SourceError("the remote names no default branch", mend="check the address")
