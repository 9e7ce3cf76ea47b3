"""What events and landings come out of histories: each case is a small real repository."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from conftest import Tree
from small import CONFIG, derive

READER = "def train(cfg):\n    return cfg.eps_high + cfg.lr\n"


def config(*lines: str) -> str:
    body = "".join(f"    {x}\n" for x in lines)
    return f"from dataclasses import dataclass, field\n\n@dataclass\nclass LossConfig:\n{body}"


def changes(events: list[Any], option: str) -> list[tuple[str, str, str]]:
    found = [e for e in events if e.option == option]
    return [(e.change, e.before, e.after) for e in sorted(found, key=lambda e: e.committed_at)]


def landing(derived: Any, method: str) -> Any:
    found = [x for x in derived.landings if x.method == method]
    assert len(found) <= 1, found
    return found[0] if found else None


def test_first_commit_is_an_upper_bound_and_later_ones_are_exact(tree: Tree, tmp_path: Path) -> None:
    tree.commit({"toy/config.py": config("eps_high: float = 0.2"), "toy/train.py": READER})
    second = tree.commit({"toy/loss.py": '@register_loss("gspo")\ndef f(): ...\n'}, "GSPO (#12)")
    made = derive(tree.path, tmp_path)
    assert landing(made, "clip-higher").bound == "upper"
    assert landing(made, "clip-higher").bound_reason == "first commit"
    gspo = landing(made, "gspo")
    assert (gspo.commit, gspo.bound, gspo.pr, gspo.tier, gspo.line) == (second, "exact", "12", "core", "1")
    assert gspo.committed_at == "2023-11-15T00:13:20Z"
    assert gspo.lag_days == "14"


def test_declared_is_not_landed_until_something_reads_it(tree: Tree, tmp_path: Path) -> None:
    tree.commit({"toy/args.py": "p.add_argument('--lr')\n"})
    declared = tree.commit({"toy/args.py": "p.add_argument('--lr')\np.add_argument('--dual-clip', type=float)\n"})
    # a parameter of that name, a comment, a test and a docstring are no reads
    tree.commit(
        {"toy/loss.py": 'def loss(dual_clip=None):\n    """args.dual_clip"""\n    # args.dual_clip\n    return dual_clip\n'}
    )
    tree.commit({"tests/test_loss.py": "assert args.dual_clip\n"})
    assert landing(derive(tree.path, tmp_path), "dual-clip") is None
    wired = tree.commit({"toy/actor.py": "def step(args):\n    return loss(dual_clip=args.dual_clip)\n"})
    made = landing(derive(tree.path, tmp_path), "dual-clip")
    assert made.commit == wired
    assert made.declared_at < made.wired_at == made.committed_at
    assert declared != wired
    dead = tree.commit({"toy/actor.py": "def step(args):\n    return loss()\n"})
    again = derive(tree.path, tmp_path)
    assert landing(again, "dual-clip").removed_commit == dead
    assert [(c, b, a) for c, b, a in changes(again.events, "--dual-clip")] == [
        ("added", "", ""),
        ("wired", "", ""),
        ("unwired", "", ""),
    ]
    assert [o.wired for o in again.options if o.option == "--dual-clip"] == ["no"]


def test_revert_and_relanding_keep_the_first_date(tree: Tree, tmp_path: Path) -> None:
    tree.commit({"toy/loss.py": "x = 1\n"})
    first = tree.commit({"toy/loss.py": '@register_loss("gspo")\ndef f(): ...\n'})
    tree.commit({"toy/loss.py": "x = 1\n"}, "revert")
    tree.commit({"toy/loss.py": '@register_loss("gspo")\ndef f(): ...\n'})
    made = derive(tree.path, tmp_path)
    assert landing(made, "gspo").commit == first
    assert landing(made, "gspo").removed_commit == ""
    assert [c for c, _, _ in changes(made.events, "loss.mode")] == ["choice_added", "choice_removed", "choice_added"]


def test_moves_and_copies_of_trees_are_no_landings(tree: Tree, tmp_path: Path) -> None:
    first = tree.commit({"toy/losses/a.py": '@register_loss("gspo")\ndef f(): ...\n'})
    tree.commit({"toy/newer/losses/a.py": '@register_loss("gspo")\ndef f(): ...\n'}, "copy everything")
    tree.commit({"toy/losses/a.py": None}, "delete the old tree")
    made = derive(tree.path, tmp_path)
    assert landing(made, "gspo").commit == first
    assert landing(made, "gspo").removed_commit == ""
    assert changes(made.events, "loss.mode") == [
        ("choice_added", "", "gspo"),
        ("moved", "toy/losses/a.py", "toy/newer/losses/a.py"),
    ]


def test_rename_is_one_event_and_keeps_the_landing(tree: Tree, tmp_path: Path) -> None:
    tree.commit({"toy/config.py": config("lr: float = 0.1"), "toy/train.py": READER})
    first = tree.commit({"toy/config.py": config("lr: float = 0.1", "eps_high: float = 0.28")})
    renamed = config("lr: float = 0.1", "clip_high: float = 0.28")
    tree.commit({"toy/config.py": renamed, "toy/train.py": "def t(cfg):\n    return cfg.clip_high + cfg.lr\n"})
    small = copy.deepcopy(CONFIG)
    small["renames"] = [{"before": "loss.eps_high", "after": "loss.clip_high"}]
    made = derive(tree.path, tmp_path, small)
    assert ("renamed", "loss.eps_high", "loss.clip_high") in changes(made.events, "loss.clip_high")
    assert not [e for e in made.events if e.change == "removed"]
    row = landing(made, "clip-higher")
    assert (row.commit, row.option, row.head_option, row.removed_commit) == (first, "loss.eps_high", "loss.clip_high", "")
    assert next(o for o in made.options if o.option == "loss.clip_high").since_commit == first


def test_same_last_name_in_another_section_is_a_rename(tree: Tree, tmp_path: Path) -> None:
    tree.commit({"toy/args.py": "p.add_argument('--lr', default=0.5)\n"})
    tree.commit({"toy/args.py": "p.add_argument('--actor.lr', default=0.5)\n"})
    assert ("renamed", "--lr", "--actor.lr") in changes(derive(tree.path, tmp_path).events, "--actor.lr")


def test_default_changes_compare_values_not_spellings(tree: Tree, tmp_path: Path) -> None:
    tree.commit({"toy/config.py": config("eps_high: float = 6", "lr: float = 1e-6"), "toy/train.py": READER})
    tree.commit({"toy/config.py": config("eps_high: float = 6.0", "lr: float = field(default=0.000001, metadata={})")})
    tree.commit({"toy/config.py": config("eps_high: float | None = None", "lr: float = 1e-6")})
    made = derive(tree.path, tmp_path)
    assert changes(made.events, "loss.lr") == [("added", "", "1e-06")]
    assert changes(made.events, "loss.eps_high") == [("added", "", "6"), ("default_changed", "6.0", "null")]
    assert landing(made, "clip-higher").tier == "default"
    assert landing(made, "clip-higher").head_tier == "switch"


def test_tier_changes_with_the_place(tree: Tree, tmp_path: Path) -> None:
    tree.commit({"x.py": ""})
    tree.commit({"experimental/a/config.py": config("eps_high: float = 0.2"), "toy/train.py": READER})
    tree.commit({"experimental/a/config.py": None, "toy/config.py": config("eps_high: float = 0.2")})
    made = derive(tree.path, tmp_path)
    assert ("tier_changed", "experimental", "switch") in changes(made.events, "loss.eps_high")
    row = landing(made, "clip-higher")
    assert (row.tier, row.head_tier, row.removed_commit) == ("experimental", "default", "")


def test_inherited_fields_survive_a_move_to_a_base_class(tree: Tree, tmp_path: Path) -> None:
    tree.commit({"toy/config.py": config("eps_high: float = 0.2"), "toy/train.py": READER})
    tree.commit(
        {
            "toy/base.py": "from dataclasses import dataclass\n\n@dataclass\nclass Shared:\n    eps_high: float = 0.2\n",
            "toy/config.py": "from .base import Shared\n\nclass LossConfig(Shared):\n    lr: float = 1.0\n",
        }
    )
    made = derive(tree.path, tmp_path)
    assert changes(made.events, "loss.eps_high") == [("added", "", "0.2"), ("moved", "toy/config.py", "toy/base.py")]


def test_a_behaviour_without_option_lands_by_its_marker(tree: Tree, tmp_path: Path) -> None:
    tree.commit({"toy/loss.py": "def kl(p, q):\n    return p - q\n"})
    fixed = tree.commit({"toy/loss.py": "def kl(p, q):\n    # corrected\n    return (p - q) * score_function(p)\n"})
    made = landing(derive(tree.path, tmp_path), "kl-gradient-fix")
    assert (made.commit, made.option, made.tier, made.bound) == (fixed, "(fixed-gradient)", "default", "exact")


def test_merge_commit_counts_and_the_inner_commit_stands_beside_it(tree: Tree, tmp_path: Path) -> None:
    tree.commit({"toy/loss.py": "x = 1\n"})
    tree.git("checkout", "-q", "-b", "side")
    tree.commit({"toy/other.py": "y = 1\n"})
    inner = tree.commit({"toy/loss.py": '@register_loss("gspo")\ndef f(): ...\n'})
    tree.git("checkout", "-q", "main")
    tree.commit({"toy/more.py": "z = 1\n"})
    tree.hour += 1
    tree.git("merge", "-q", "--no-ff", "-m", "Merge pull request #7 from side", "side")
    made = landing(derive(tree.path, tmp_path), "gspo")
    assert (made.commit, made.inner_commit, made.pr) == (tree.git("rev-parse", "HEAD"), inner, "7")


def test_bulk_commits_give_upper_bounds_with_their_reason(tree: Tree, tmp_path: Path) -> None:
    tree.commit({"x.py": ""})
    dump = tree.commit({"toy/loss.py": '@register_loss("gspo")\ndef f(): ...\n'}, "publish v2")
    small = copy.deepcopy(CONFIG)
    small["bulk"] = [{"commit": dump[:10], "reason": "bulk release", "evidence": "periodic dump"}]
    made = derive(tree.path, tmp_path, small)
    assert (landing(made, "gspo").bound, landing(made, "gspo").bound_reason) == ("upper", "bulk release")
    assert {e.bound for e in made.events if e.option == "loss.mode"} == {"upper"}


def test_recipe_folders(tree: Tree, tmp_path: Path) -> None:
    tree.commit({"recipe/README.md": "x"})
    landed_at = tree.commit({"recipe/dapo/main.py": "x = 1\n"})
    gone = tree.commit({"recipe/dapo/main.py": None})
    made = landing(derive(tree.path, tmp_path), "dapo")
    assert (made.commit, made.tier, made.removed_commit, made.path) == (landed_at, "recipe", gone, "recipe/dapo")


def test_undecided_options_are_named_with_their_place(tree: Tree, tmp_path: Path) -> None:
    sha = tree.commit(
        {"toy/loss.py": '\n@register_loss("gspo", "brand_new")\ndef f(): ...\n', "toy/args.py": "p.add_argument('--fresh')\n"}
    )
    made = derive(tree.path, tmp_path)
    assert [(u.option, u.value, u.path, u.line, u.commit) for u in made.undecided] == [
        ("--fresh", "", "toy/args.py", "1", sha),
        ("loss.mode", "brand_new", "toy/loss.py", "2", sha),
    ]


def test_needs_put_the_landing_where_everything_holds(tree: Tree, tmp_path: Path) -> None:
    tree.commit({"toy/loss.py": '@register_loss("gspo")\ndef f(): ...\n'})
    both = tree.commit({"toy/args.py": "p.add_argument('--dual-clip')\n", "toy/a.py": "print(args.dual_clip)\n"})
    small = copy.deepcopy(CONFIG)
    small["methods"] = [{"method": "gspo", "options": ["loss.mode=gspo"], "needs": ["--dual-clip"]}]
    assert landing(derive(tree.path, tmp_path, small), "gspo").commit == both


def test_file_renamed_by_git_with_unusual_names(tree: Tree, tmp_path: Path) -> None:
    tree.commit({'toy/tab\tand "quote" é.py': '@register_loss("gspo")\ndef f(): ...\n'})
    assert landing(derive(tree.path, tmp_path), "gspo").path == 'toy/tab\tand "quote" é.py'
