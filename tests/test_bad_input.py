"""Bad input gets one clear message and a documented exit code, and loses nothing."""

from __future__ import annotations

import csv
import os
import subprocess
from pathlib import Path

import pytest
import yaml
from conftest import Tree
from small import CONFIG, derive, field_with

from landed.cli.main import main
from landed.errors import SourceError
from landed.sources.git import Repo


@pytest.fixture
def fields(tmp_path: Path) -> list[str]:
    field_with(tmp_path / "fields", CONFIG)
    return ["--field", "toy_field", "--fields", str(tmp_path / "fields")]


def run_replay(fields: list[str], repo: Path, tmp_path: Path, *more: str) -> int:
    out = ["--out", str(tmp_path / "snapshot"), "--cache", str(tmp_path / "cache"), "--workers", "1"]
    return main(["replay", *fields, "--repo", f"toy={repo}", *out, *more])


def test_missing_and_wrong_places(fields: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_replay(fields, tmp_path / "nowhere", tmp_path) == 3
    assert "landed sync toy" in capsys.readouterr().err
    (tmp_path / "folder").mkdir()
    assert run_replay(fields, tmp_path / "folder", tmp_path) == 3
    assert "not a git repository" in capsys.readouterr().err
    assert main(["replay", *fields, "--repo", "tyo=/x"]) == 2
    assert "did you mean toy?" in capsys.readouterr().err
    assert main(["replay", *fields, "toi"]) == 2
    assert "did you mean toy?" in capsys.readouterr().err


def test_empty_and_shallow_repositories(
    fields: list[str], tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_replay(fields, tree.path, tmp_path) == 3
    assert "no commit" in capsys.readouterr().err
    for n in range(3):
        tree.commit({"a": str(n)})
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{tree.path}", str(tmp_path / "shallow")], check=True)
    assert run_replay(fields, tmp_path / "shallow", tmp_path) == 3
    assert "shallow" in capsys.readouterr().err


def test_damaged_and_missing_objects_are_reported_and_the_rest_is_read(tree: Tree, tmp_path: Path) -> None:
    tree.commit({"toy/args.py": "p.add_argument('--lr')\n"})
    tree.commit(
        {"toy/loss.py": '@register_loss("gspo")\ndef f(): ...\n', "toy/zz.py": '@register_loss("vanilla")\ndef g(): ...\n'}
    )
    for path, damage in (("toy/loss.py", b"garbage"), ("toy/zz.py", None)):
        blob = tree.git("rev-parse", f"HEAD:{path}")
        loose = tree.path / ".git" / "objects" / blob[:2] / blob[2:]
        os.chmod(loose, 0o644)
        if damage is None:
            loose.unlink()
        else:
            loose.write_bytes(damage)
    made = derive(tree.path, tmp_path)
    assert {p.path for p in made.problems} == {"toy/loss.py", "toy/zz.py"}
    assert [o.option for o in made.options] == ["--lr"]


def test_links_and_submodules_are_no_sources(tree: Tree, tmp_path: Path) -> None:
    tree.commit({"toy/loss.py": '@register_loss("gspo")\ndef f(): ...\n'})
    os.symlink("loss.py", tree.path / "toy" / "link.py")
    tree.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},toy/sub.py")
    tree.hour += 1
    tree.git("add", "toy/link.py")
    tree.git("commit", "-q", "-m", "link and submodule")
    os.unlink(tree.path / "toy" / "link.py")
    tree.write({"toy/link.py": '@register_loss("vanilla")\ndef f(): ...\n'})
    tree.hour += 1
    tree.git("add", "toy/link.py")
    tree.git("commit", "-q", "-m", "the link becomes a file")
    made = derive(tree.path, tmp_path)
    assert not made.problems
    added = [e for e in made.events if e.change == "choice_added"]
    assert [(e.after, e.path) for e in added] == [("gspo", "toy/loss.py"), ("vanilla", "toy/link.py")]


def test_odd_sources_do_not_stop_a_replay(tree: Tree, tmp_path: Path) -> None:
    tree.commit(
        {
            "toy/loss.py": b'x = "\xff\xfe"\n@register_loss("gspo")\ndef f(): ...\n',
            "toy/args.py": "<<<<<<< HEAD\np.add_argument('--lr')\n=======\np.add_argument('--dual-clip')\n>>>>>>> x\n",
            "toy/big.py": b"x = 1\n" * 1_800_000,
            "toy/config.py": "",
        }
    )
    made = derive(tree.path, tmp_path)
    assert {p.path for p in made.problems} == {"toy/loss.py", "toy/args.py", "toy/big.py"}
    assert {"--lr", "--dual-clip", "loss.mode"} == {o.option for o in made.options}


def test_unmapped_options_stop_the_build_and_nothing_is_written(
    fields: list[str], tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sha = tree.commit({"toy/args.py": "\np.add_argument('--brand-new')\n"})
    assert run_replay(fields, tree.path, tmp_path) == 1
    err = capsys.readouterr().err
    assert f"--brand-new\n  at toy@{sha[:12]} toy/args.py:2" in err
    assert "frameworks/toy.yaml" in err
    assert not (tmp_path / "snapshot").exists()
    assert (
        main(
            [
                "validate",
                *fields,
                "--repo",
                f"toy={tree.path}",
                "--cache",
                str(tmp_path / "cache"),
                "--snapshot",
                str(tmp_path / "no"),
            ]
        )
        == 1
    )
    assert "brand-new" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda c: c | {"nonsense": 1}, "nonsense"),
        (lambda c: c | {"declarations": [{"id": "x", "kind": "spell", "paths": []}]}, "declarations[0].kind"),
        (lambda c: c | {"methods": [{"method": "no-such", "options": ["a"]}]}, "no-such"),
        (lambda c: c | {"bulk": [{"commit": "x", "reason": "because", "evidence": ""}]}, "bulk[0].reason"),
    ],
)
def test_defects_of_data_files_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], edit: object, message: str) -> None:
    root = field_with(tmp_path, CONFIG)
    (root / "toy_field" / "frameworks" / "toy.yaml").write_text(yaml.safe_dump(edit(CONFIG)))  # type: ignore[operator]
    assert main(["validate", "--field", "toy_field", "--fields", str(root)]) == 1
    err = capsys.readouterr().err
    assert message in err
    assert "toy.yaml" in err


def test_snapshots_changed_by_hand_are_found(
    fields: list[str], tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree.commit({"toy/loss.py": '@register_loss("gspo")\ndef f(): ...\n'})
    assert run_replay(fields, tree.path, tmp_path) == 0
    snapshot = tmp_path / "snapshot"
    assert main(["validate", *fields, "--snapshot", str(snapshot)]) == 0
    rows = list(csv.reader((snapshot / "landings.csv").open()))
    text = (snapshot / "landings.csv").read_text().replace("exact", "sure").replace("upper", "sure")
    (snapshot / "landings.csv").write_text(text)
    assert main(["validate", *fields, "--snapshot", str(snapshot)]) == 1
    err = capsys.readouterr().err
    assert "changed by hand" in err
    assert "landings.csv:2" in err
    assert len(rows) == 2


def test_git_failures_keep_gits_own_reason(tree: Tree) -> None:
    tree.commit({"a": "1"})
    with pytest.raises(SourceError, match="rev-list failed"):
        Repo(tree.path).git("rev-list", "no-such-ref")


def test_sync_clones_updates_and_names_a_bad_address(
    fields: list[str], tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree.commit({"a": "1"})
    store = ["--store", str(tmp_path / "store")]
    address = f"toy=file://{tree.path}"
    assert main(["sync", *fields, *store, "--repo", address]) == 0
    assert "cloned" in capsys.readouterr().out
    second = tree.commit({"a": "2"})
    assert main(["sync", *fields, *store, "--repo", address]) == 0
    assert f"updated, head {second[:12]}" in capsys.readouterr().out
    assert Repo(tmp_path / "store" / "toy.git").head() == second
    tree.git("checkout", "-q", "-b", "trunk")
    third = tree.commit({"a": "3"})
    assert main(["sync", *fields, *store, "--repo", address]) == 0
    assert Repo(tmp_path / "store" / "toy.git").head() == third
    assert main(["sync", *fields, *store, "--repo", f"toy=file://{tmp_path}/gone"]) == 3
    assert "check the address" in capsys.readouterr().err
    assert Repo(tmp_path / "store" / "toy.git").head() == third
