"""Releases: each tag's own tree, answers for a version, differences between two."""

from __future__ import annotations

import copy
import json
import zipfile
from pathlib import Path

import pytest
from conftest import Tree
from small import CONFIG, derive, field_with

from landed.cli.main import main
from landed.landings.versions import is_prerelease, same_version, version_of
from landed.sources.packages import open_archive


def config() -> dict[str, object]:
    made = copy.deepcopy(CONFIG)
    made["style"] = "hydra"
    made["declarations"].append(  # type: ignore[attr-defined]
        {"id": "wrong-sign", "kind": "marker", "algorithm": [], "paths": ["toy/sign.py"], "pattern": "return -x"}
    )
    made["defects"] = [
        {
            "id": "sign", "options": ["loss.eps_high", "loss.clip_high"], "during": ["(wrong-sign)"], "kind": "wrong",
            "summary": "the sign was wrong", "mend": "update", "evidence": "two commits",
        }
    ]  # fmt: skip
    return made  # type: ignore[return-value]


def build(tree: Tree) -> None:
    """Main line with a release branch: 1.0 (no gspo), 1.0.1 picks gspo, 1.1rc1, 1.1 (clip renamed), main goes on."""
    tree.commit(
        {
            "toy/config.py": "class LossConfig:\n    eps_high: float = 0.2\n    lr: float = 1.0\n",
            "toy/train.py": "x = cfg.eps_high, cfg.lr\n",
        }
    )
    tree.git("tag", "v1.0")
    tree.git("tag", "nightly")
    tree.commit({"toy/loss.py": '@register_loss("gspo")\ndef f(): ...\n'})
    tree.git("checkout", "-q", "-b", "release", "v1.0")
    tree.commit({"toy/loss.py": '@register_loss("gspo")\ndef f(): ...\n'})
    tree.hour += 1
    tree.git("tag", "-a", "-m", "picked", "v1.0.1")
    tree.git("checkout", "-q", "main")
    tree.commit(
        {
            "toy/config.py": "class LossConfig:\n    clip_high: float = 0.2\n    lr: float = 2.0\n",
            "toy/train.py": "x = cfg.clip_high, cfg.lr\n",
        }
    )
    tree.git("tag", "v1.1.rc1")
    tree.commit(
        {"experimental/e/config.py": "class LossConfig:\n    kl: str = field(default='k1', metadata={'choices': ['k1', 'k3']})\n"}
    )
    tree.commit(
        {
            "toy/other.py": "y = cfg.kl\n",
            "toy/kl.py": "def kl(a):\n    return score_function(a)\n",
            "toy/loss.py": '@register_loss("vanilla")\ndef f(): ...\n',
        }
    )
    tree.git("tag", "v1.1")
    tree.commit({"recipe/dapo/a.py": "x = 1\n"})


def test_the_first_release_is_the_first_tree_that_offers_a_method(tree: Tree, tmp_path: Path) -> None:
    build(tree)
    derived = derive(tree.path, tmp_path, config())
    assert [(r.version, r.tag, r.prerelease, r.main_line) for r in derived.releases] == [
        ("1.0", "v1.0", "no", "yes"), ("1.0.1", "v1.0.1", "no", "no"), ("1.1rc1", "v1.1.rc1", "yes", "yes"), ("1.1", "v1.1", "no", "yes"),
    ]  # fmt: skip
    first = {x.method: x.release for x in derived.landings}
    # 1.0.1 does not contain the commit of the landing, but its tree has the method; what came after 1.1 is in no release
    assert first == {"clip-higher": "1.0", "gspo": "1.0.1", "dapo": ""}
    spans = {(o.method, o.option, o.value, o.default, o.since, o.until) for o in derived.offers}
    assert spans == {
        ("clip-higher", "loss.eps_high", "", "0.2", "1.0", "1.1rc1"), ("clip-higher", "loss.clip_high", "", "0.2", "1.1rc1", ""),
        ("gspo", "loss.mode", "gspo", "", "1.0.1", "1.1"),
    }  # fmt: skip


@pytest.fixture
def snapshot(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    build(tree)
    made = config()
    made["set_aside"][0]["options"] += ["loss.kl", "loss.kl=*"]  # type: ignore[index]
    root = field_with(tmp_path / "fields", made)
    out = tmp_path / "snapshot"
    words = [
        "replay",
        "--field",
        "toy_field",
        "--fields",
        str(root),
        "--repo",
        f"toy={tree.path}",
        "--out",
        str(out),
        "--no-cache",
    ]
    assert main(words) == 0
    return out


def run(capsys: pytest.CaptureFixture[str], snapshot: Path, *words: str) -> list[dict[str, str]]:
    capsys.readouterr()
    assert main([*words, "--snapshot", str(snapshot), "--format", "json"]) == 0
    found: list[dict[str, str]] = json.loads(capsys.readouterr().out)
    return found


def test_can_answers_for_a_version(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = run(capsys, snapshot, "can", "clip-higher", "--framework", "toy==1.0")[0]
    assert (row["framework"], row["answer"], row["option"], row["default"], row["since"]) == (
        "toy==1.0",
        "yes",
        "loss.eps_high",
        "0.2",
        "1.0",
    )
    assert run(capsys, snapshot, "can", "clip-higher", "--framework", "toy==v1.1")[0]["option"] == "loss.clip_high"
    notes = [
        run(capsys, snapshot, "can", m, "--framework", f"toy=={v}")[0]["note"]
        for m, v in (("gspo", "1.0.0"), ("gspo", "1.1"), ("dapo", "1.1"))
    ]
    assert notes[:2] == ["first in 1.0.1", "gone since 1.1"]
    assert notes[2].startswith("on main since 2023-11-1")


def test_defects_have_windows_on_every_line_of_trees(tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree.commit({"toy/config.py": "class LossConfig:\n    eps_high: float = 0.2\n", "toy/train.py": "x = 1\n"})
    tree.git("tag", "v1.0")
    tree.commit({"toy/train.py": "x = cfg.eps_high\n", "toy/sign.py": "def f(x):\n    return -x\n"})
    tree.git("tag", "v1.1")
    mended = tree.commit({"toy/sign.py": "def f(x):\n    return x\n"})
    tree.git("checkout", "-q", "-b", "release", "v1.1")
    tree.commit({"toy/extra.py": "y = 1\n"})
    tree.git("tag", "v1.1.1")  # made after the mend on main, without it
    tree.git("checkout", "-q", "main")
    tree.commit({"toy/train.py": "x = 1\n"})
    found = {d.defect: d for d in derive(tree.path, tmp_path, config()).defects}
    assert set(found) == {"sign", "not-read:loss.eps_high"}
    assert (found["sign"].until_commit, found["sign"].releases, found["sign"].methods) == (mended, "1.1 1.1.1", "clip-higher")
    assert found["not-read:loss.eps_high"].releases == "1.0"
    assert found["not-read:loss.eps_high"].until == ""
    assert found["not-read:loss.eps_high"].decided_by == "rule"


def test_diff_between_two_versions(snapshot: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def changes(*words: str) -> list[tuple[str, ...]]:
        return [(r["change"], r["option"], r["before"], r["after"]) for r in run(capsys, snapshot, "diff", *words)]

    there = changes("toy==1.0", "toy==1.1")
    assert set(there) == {
        ("renamed", "loss.clip_high", "loss.eps_high", "loss.clip_high"), ("default_changed", "loss.lr", "1.0", "2.0"),
        ("added", "loss.kl", "", "k1"), ("added", "loss.mode", "", ""),
    }  # fmt: skip
    values = run(capsys, snapshot, "diff", "toy==1.0.1", "toy==1.1")
    assert [(r["change"], r["before"], r["after"], r["method"]) for r in values if r["option"] == "loss.mode"] == [
        ("choice_removed", "gspo", "", "gspo"), ("choice_added", "", "vanilla", ""),
    ]  # fmt: skip
    back = changes("toy==1.1", "toy==1.0")
    assert {(c, o) for c, o, _, _ in back} == {
        ("renamed", "loss.eps_high"), ("default_changed", "loss.lr"), ("removed", "loss.kl"), ("removed", "loss.mode"),
    }  # fmt: skip
    assert [x[:2] for x in changes("toy==1.0", "toy==1.1", "--methods")] == [("renamed", "loss.clip_high")]
    assert changes("toy==1.1", "toy==1.1") == []
    assert [x[:2] for x in changes("toy==1.1", "toy==main")] == [("added", "recipe/dapo")]
    script = tmp_path / "run.sh"
    script.write_text("python -m toy \\\n  loss.eps_high=0.28\n")
    assert [x[1] for x in changes("toy==1.0", "toy==1.1", "--config", str(script))] == ["loss.clip_high"]
    page = tmp_path / "run.yaml"
    page.write_text("loss:\n  lr: 3\n")
    assert [x[1] for x in changes("toy==1.0", "toy==1.1", "--config", str(page))] == ["loss.lr"]


def test_defects_show_in_answers(tree: Tree, snapshot: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree.commit({"toy/sign.py": "def f(x):\n    return -x\n"})
    words = ["--field", "toy_field", "--fields", str(tmp_path / "fields"), "--repo", f"toy={tree.path}"]
    assert main(["replay", *words, "--out", str(snapshot), "--no-cache"]) == 0
    assert run(capsys, snapshot, "can", "clip-higher")[0]["defects"] == "loss.eps_high; loss.clip_high: the sign was wrong"
    assert run(capsys, snapshot, "can", "clip-higher", "--framework", "toy==1.1")[0]["defects"] == ""
    assert main(["show", "clip-higher", "--snapshot", str(snapshot)]) == 0
    assert "the sign was wrong" in capsys.readouterr().out


def test_releases_are_listed(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [r["version"] for r in run(capsys, snapshot, "releases", "toy")] == ["1.0", "1.0.1", "1.1rc1", "1.1"]
    assert [(r["method"], r["release"]) for r in run(capsys, snapshot, "releases", "--method", "gspo")] == [("gspo", "1.0.1")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["can", "gspo", "--framework", "toy==1.2"], "did you mean"),
        (["diff", "toy==9", "toy==1.0"], "no release '9'"),
        (["diff", "toy", "toy==1.0"], "names no version"),
        (["diff", "toy==1.0", "tot==1.1"], "did you mean toy"),
        (["diff", "toy==1.0", "toy==1.1", "--config", "nowhere.sh"], "cannot be read"),
        (["landings", "--framework", "toy==1.0"], "main branches"),
    ],
)
def test_wrong_versions_get_one_clear_message(
    snapshot: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main([*words, "--snapshot", str(snapshot)]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("tag", "version", "pre"),
    [
        ("v0.3.0.rc0", "0.3.0rc0", True),
        ("1.2.3", "1.2.3", False),
        ("v0.3.0-lite", "0.3.0-lite", False),
        ("v0.6.0.post1", "0.6.0.post1", False),
    ],
)
def test_versions_as_tags_write_them(tag: str, version: str, pre: bool) -> None:
    assert version_of(tag) == version
    assert is_prerelease(version) == pre
    assert same_version(tag, version)
    assert same_version("0.5", "v0.5.0")
    assert not same_version("0.5", "0.5.1")


def test_code_of_a_platform_wheel_is_found(tmp_path: Path) -> None:
    wheel = tmp_path / "toy-1.0-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as z:
        z.writestr("toy-1.0.data/purelib/toy/config.py", "x = 1")
        z.writestr("toy-1.0.dist-info/METADATA", "Name: toy")
    assert set(open_archive(wheel).files) == {"toy/config.py", "toy-1.0.dist-info/METADATA"}
