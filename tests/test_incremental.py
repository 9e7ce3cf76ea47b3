"""A replay from where the last one stopped, from nothing, and from another clone give the same rows, byte for byte."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import msgspec
from conftest import Tree
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small import derive

CONTENT = {
    "toy/config.py": [
        "class LossConfig(Shared):\n    lr: float = 1.0\n", "class LossConfig:\n    eps_high: float = 0.2\n",
        "import x\n\nclass LossConfig:\n    clip_high: float = 0.2\n", "class LossConfig(\n<<<<<<< HEAD\n",
    ],
    "toy/base.py": ["class Shared:\n    eps_high: float = 0.3\n", "class Shared:\n    eps_high: float = None\n"],
    "toy/args.py": ["p.add_argument('--dual-clip', default=3)\n", "\n\np.add_argument('--dual-clip', choices=['a', 'gspo'])\np.add_argument('--lr')\n"],
    "toy/loss.py": [
        '@register_loss("gspo")\ndef f(): ...\n', '@register_loss("vanilla")\ndef f(): ...\n',
        "def kl(a):\n    return score_function(a)\n", "\xff\xfe",
    ],
    "toy/use.py": ["a = args.dual_clip\n", "a = cfg.eps_high\n", "a = cfg['clip_high']\n", "pass\n"],
    "toy/use2.py": ["b = cfg.eps_high + cfg.lr\n", "c = args.dual_clip\n"],
    "recipe/dapo/run.py": ["x = 1\n"],
    "experimental/e/config.py": ["class LossConfig:\n    eps_high: float = 0.5\n"],
}  # fmt: skip
PATHS = sorted(CONTENT)

step = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(PATHS), st.integers(0, 3)),
    st.tuples(st.just("delete"), st.sampled_from(PATHS), st.just(0)),
    st.tuples(st.just("move"), st.sampled_from(PATHS), st.integers(0, 3)),
    st.tuples(st.just("copy"), st.sampled_from(PATHS), st.integers(0, 3)),
    st.tuples(st.just("revert"), st.just(""), st.just(0)),
    st.tuples(st.just("branch"), st.sampled_from(PATHS), st.integers(0, 3)),
    st.tuples(st.just("tag"), st.just(""), st.integers(0, 1)),
)


def perform(tree: Tree, action: tuple[str, str, int]) -> None:
    kind, path, n = action
    target = tree.path / path
    if kind == "write":
        tree.commit({path: CONTENT[path][n % len(CONTENT[path])]})
    elif kind == "delete" and target.is_file():
        tree.commit({path: None})
    elif kind in ("move", "copy") and target.is_file():
        other = f"toy/x{n}/{target.name}"
        tree.commit({other: target.read_bytes(), **({path: None} if kind == "move" else {})})
    elif kind == "revert" and tree.git("rev-list", "--count", "HEAD") != "1":
        tree.hour += 1
        merge = ["-m", "1"] if len(tree.git("rev-list", "--parents", "-1", "HEAD").split()) > 2 else []
        tree.git("revert", "--no-edit", *merge, "HEAD") if _changes(tree) else tree.commit()
    elif kind == "tag":
        name = f"v1.{tree.hour}"
        if name not in tree.git("tag").split():
            tree.git("tag", *(["-a", "-m", "release"] if n else []), name)
    elif kind == "branch":
        tree.git("checkout", "-q", "-b", "side")
        tree.commit({path: CONTENT[path][n % len(CONTENT[path])]})
        tree.git("checkout", "-q", "main")
        tree.commit({"toy/other.py": f"x = {tree.hour}\n"})
        tree.hour += 1
        tree.git("merge", "-q", "--no-ff", "-m", "merge", "side")
        tree.git("branch", "-q", "-D", "side")
    else:
        tree.commit()


def _changes(tree: Tree) -> bool:
    return bool(tree.git("diff", "--name-only", "HEAD^", "HEAD"))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(step, min_size=2, max_size=10), st.data())
def test_incremental_equals_full(actions: list[tuple[str, str, int]], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tree = Tree(folder / "repo")
        tree.commit({"README": "x"})
        stops = data.draw(st.sets(st.integers(0, len(actions) - 1), max_size=4))
        cache = folder / "cache.sqlite"
        for n, action in enumerate(actions):
            perform(tree, action)
            if n in stops:
                derive(tree.path, folder, cache=cache)
        grown = derive(tree.path, folder, cache=cache)
        whole = derive(tree.path, folder)
        assert msgspec.json.encode(grown) == msgspec.json.encode(whole)


def test_another_clone_gives_the_same_bytes(tree: Tree, tmp_path: Path) -> None:
    for n, path in enumerate(PATHS):
        tree.commit({path: CONTENT[path][0]}, f"c{n}")
    clone = tmp_path / "clone.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(tree.path), str(clone)], check=True)
    subprocess.run(["git", f"--git-dir={clone}", "repack", "-q", "-a", "-d"], check=True)
    assert msgspec.json.encode(derive(tree.path, tmp_path)) == msgspec.json.encode(derive(clone, tmp_path))


def test_rewritten_history_is_read_anew(tree: Tree, tmp_path: Path) -> None:
    cache = tmp_path / "c.sqlite"
    tree.commit({"toy/loss.py": CONTENT["toy/loss.py"][0]})
    first = tree.commit({"toy/args.py": CONTENT["toy/args.py"][0], "toy/use.py": CONTENT["toy/use.py"][0]})
    derive(tree.path, tmp_path, cache=cache)
    tree.git("reset", "-q", "--hard", "HEAD^")
    tree.commit({"toy/args.py": CONTENT["toy/args.py"][1], "toy/use.py": CONTENT["toy/use.py"][0]})
    made = derive(tree.path, tmp_path, cache=cache)
    assert first not in {e.commit for e in made.events}
    assert msgspec.json.encode(made) == msgspec.json.encode(derive(tree.path, tmp_path))


def test_damaged_cache_is_thrown_away(tree: Tree, tmp_path: Path) -> None:
    tree.commit({"toy/loss.py": CONTENT["toy/loss.py"][0]})
    cache = tmp_path / "c.sqlite"
    want = msgspec.json.encode(derive(tree.path, tmp_path, cache=cache))
    shutil.rmtree(tmp_path / "x", ignore_errors=True)
    cache.write_bytes(b"not a database" * 100)
    for rest in tmp_path.glob("c.sqlite-*"):
        rest.unlink()
    assert msgspec.json.encode(derive(tree.path, tmp_path, cache=cache)) == want


def test_lines_at_the_head_follow_the_file(tree: Tree, tmp_path: Path) -> None:
    tree.commit({"toy/args.py": "p.add_argument('--dual-clip')\n"})
    tree.commit({"toy/args.py": "\n\n\np.add_argument('--dual-clip')\n", "toy/use.py": "x = args.dual_clip\n"})
    made = derive(tree.path, tmp_path)
    assert [(o.option, o.line) for o in made.options] == [("--dual-clip", "4")]
    assert [(x.line) for x in made.landings] == ["4"]
