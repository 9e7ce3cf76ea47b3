"""Commands as a person types them, on a small snapshot made from a real repository."""

from __future__ import annotations

import copy
import csv
import io
import json
import sqlite3
from pathlib import Path

import jsonschema
import pytest
from conftest import Tree
from hypothesis import given
from hypothesis import strategies as st
from small import CONFIG, field_with

from landed.answers.names import fold, near
from landed.cli.main import main
from landed.landings.paste import paste
from landed.records.tables import TABLES, schema
from landed.store import text


@pytest.fixture
def snapshot(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    config = copy.deepcopy(CONFIG)
    config["style"] = "hydra"
    root = field_with(tmp_path / "fields", config)
    gspo = root / "toy_field" / "methods" / "gspo.yaml"
    gspo.write_text(
        "slug: gspo\nname: GSPO sequence ratio\naliases: [sequence-level ratio, GSPO-seq]\nform: new-loss\ndescription: d\n"
        "sources: [{arxiv: '2507.18071'}]\nfailures: [collapse]\n"
    )
    dapo = root / "toy_field" / "methods" / "dapo.yaml"
    dapo.write_text("slug: dapo\nname: DAPO\nform: composition\ndescription: d\nparts: [clip-higher, gspo]\n")
    (root / "toy_field" / "failures.yaml").write_text(
        "failures:\n  - {slug: collapse, name: Entropy collapse, name_zh: 熵坍塌, description: d, symptoms: [entropy to zero]}\n"
    )
    tree.commit({"toy/config.py": "class LossConfig:\n    eps_high: float = None\n", "toy/train.py": "x = cfg.eps_high\n"})
    tree.commit({"toy/loss.py": '@register_loss("gspo")\ndef f(): ...\n'}, "loss (#3)")
    tree.commit({"recipe/dapo/a.py": "x = 1\n"})
    tree.commit({"recipe/dapo/a.py": None, "toy/config.py": "class LossConfig:\n    eps_high: float = 0.28\n"})
    out = tmp_path / "snapshot"
    arguments = ["--field", "toy_field", "--fields", str(root), "--repo", f"toy={tree.path}", "--out", str(out), "--workers", "1"]
    assert main(["replay", *arguments, "--cache", str(tmp_path / "facts")]) == 0
    return out


def run(capsys: pytest.CaptureFixture[str], snapshot: Path, *arguments: str) -> str:
    capsys.readouterr()
    assert main([*arguments, "--snapshot", str(snapshot)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "name",
    ["gspo", "GSPO", "gspo seq", "Sequence-Level_Ratio", "2507.18071", "arXiv:2507.18071v2", "loss.mode=gspo", "loss.mode gspo"],
)
def test_can_understands_what_people_write(snapshot: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    rows = [json.loads(x) for x in run(capsys, snapshot, "can", *name.split(), "--format", "jsonl").splitlines()]
    assert [(r["method"], r["answer"], r["option"], r["since"], r["tier"], r["write"], r["pr"]) for r in rows] == [
        ("gspo", "yes", "loss.mode=gspo", "2023-11-15", "core", "loss.mode=gspo", "3")
    ]


def test_can_prints_bounds_removals_and_compositions(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, snapshot, "can", "DAPO")
    assert "≤2023-11-14" in out
    assert "removed" in out
    assert "composition of 2 methods" in out
    assert "loss.mode=gspo" in out


def test_wrong_names_get_near_misses(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, hint in (
        (["can", "gsop"], "gspo"), (["can", "gspo", "--framework", "tyo"], "toy"), (["matrix", "--failure", "collaps"], "collapse"),
        (["export", "landing"], "landings"), (["can", "2401.00001"], "source"), (["show", "eps_hihg"], "known"),
    ):  # fmt: skip
        capsys.readouterr()
        assert main([*arguments, "--snapshot", str(snapshot)]) == 2
        assert hint in capsys.readouterr().err
    assert main(["can", "gspo", "--snapshot", "/nowhere"]) == 1
    with pytest.raises(SystemExit) as stop:
        main(["can"])
    assert stop.value.code == 2


@pytest.mark.parametrize(
    "arguments",
    [["landings"], ["log"], ["matrix"], ["can", "gspo"], ["show", "toy"], ["show", "gspo"], *(["export", t] for t in TABLES)],
)
def test_every_format_holds_the_same_rows(snapshot: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    as_json = json.loads(run(capsys, snapshot, *arguments, "--format", "json"))
    lines = [json.loads(x) for x in run(capsys, snapshot, *arguments, "--format", "jsonl").splitlines()]
    table = list(csv.DictReader(io.StringIO(run(capsys, snapshot, *arguments, "--format", "csv"))))
    assert as_json == lines
    assert [{k: v if isinstance(v, str) else json.dumps(v) for k, v in r.items()} for r in lines] == table
    md = run(capsys, snapshot, *arguments, "--format", "md").splitlines()
    assert len(md) == len(lines) + 2
    assert run(capsys, snapshot, *arguments)


def test_tables_keep_their_schema_and_order(snapshot: Path) -> None:
    for name, kind in TABLES.items():
        rows = text.read(snapshot, name)
        validator = jsonschema.Draft202012Validator(schema(kind))
        for row in rows:
            validator.validate({c: getattr(row, c) for c in kind.__struct_fields__})
        assert rows == text.ordered(rows) or name in text.SPLIT


def test_log_and_landings_filters(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changes = [
        json.loads(x)["change"] for x in run(capsys, snapshot, "log", "--option", "loss.eps*", "--format", "jsonl").splitlines()
    ]
    assert changes == ["default_changed", "added"]
    assert run(capsys, snapshot, "log", "--method", "gspo", "--format", "jsonl").count("\n") == 1
    assert run(capsys, snapshot, "log", "--change", "default_changed", "--limit", "1", "--format", "jsonl").count("\n") == 1
    assert run(capsys, snapshot, "landings", "--bound", "upper", "--format", "jsonl").count("\n") == 1
    assert run(capsys, snapshot, "landings", "--since", "2024-01-01", "--format", "jsonl") == ""
    assert run(capsys, snapshot, "landings", "--since", "2024-01-01").strip() == "no rows"


def test_show_options_and_sqlite(snapshot: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = run(capsys, snapshot, "show", "loss.eps_high")
    assert "null → 0.28" in out
    assert main(["export", "--sqlite", str(tmp_path / "a.sqlite"), "--snapshot", str(snapshot)]) == 0
    db = sqlite3.connect(tmp_path / "a.sqlite")
    assert db.execute("select name from search where search match 'sequence'").fetchall() == [("gspo",)]
    assert db.execute("select value, tier from landings where method='gspo'").fetchall() == [("gspo", "core")]


def test_matrix_of_a_failure(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, snapshot, "matrix", "--failure", "熵坍塌")
    assert "gspo" in out
    assert "clip-higher" not in out


def test_schemas_are_exported(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in [*TABLES, "framework", "method", "failure"]:
        made = json.loads(run(capsys, snapshot, "export", "--schema", name))
        jsonschema.Draft202012Validator.check_schema(made)


@pytest.mark.parametrize(
    ("style", "option", "value", "kind", "on", "line"),
    [
        ("hydra", "a.b", "gspo", "", "", "a.b=gspo"), ("hydra", "a.b", "", "bool", "", "a.b=true"), ("hydra", "a.b", "", "float", "", "a.b=VALUE"),
        ("flags", "--eps", "", "float", "nonnull", "--eps VALUE"), ("flags", "--use", "", "bool", "", "--use"),
        ("flags", "--use", "false", "bool", "", "(leave --use out)"), ("flags", "--kind", "k1", "str", "", "--kind k1"),
        ("python", "GRPOConfig.loss_type", "gspo", "str", "", 'GRPOConfig(loss_type="gspo")'), ("python", "A.b", "true", "", "", "A(b=True)"),
        ("python", "GRPOTrainer", "", "class", "", "GRPOTrainer(...)"), ("yaml", "a.b", "", "", "true", "a.b: true"),
        ("yaml", "recipe/x", "", "folder", "", "(run the recipe: recipe/x)"), ("yaml", "(m)", "", "behaviour", "", "(nothing to write: it is always on)"),
    ],
)  # fmt: skip
def test_lines_to_paste(style: str, option: str, value: str, kind: str, on: str, line: str) -> None:
    assert paste(style, option, value, kind, on) == line


@given(st.text(max_size=20), st.lists(st.text(min_size=1, max_size=12), max_size=8))
def test_near_misses_never_fail(name: str, known: list[str]) -> None:
    assert isinstance(near(name, known), str)
    assert fold(fold(name)) == fold(name) or name != name.strip("-+ ")


def test_a_new_framework_is_one_data_file(snapshot: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = Tree(tmp_path / "other")
    other.commit({"o/loss.py": 'LOSSES = {"gspo": f}\n'})
    config = {
        "framework": "other", "title": "Other", "repos": [{"name": "other", "url": "x"}],
        "declarations": [{"id": "t", "kind": "table", "paths": ["o/*.py"], "names": ["LOSSES"], "option": "loss"}],
        "methods": [{"method": "gspo", "options": ["loss=gspo"]}],
    }  # fmt: skip
    root = field_with(tmp_path / "fields", CONFIG, config)
    arguments = [
        "--field",
        "toy_field",
        "--fields",
        str(root),
        "--repo",
        f"other={other.path}",
        "--out",
        str(snapshot),
        "--workers",
        "1",
    ]
    assert main(["replay", "other", *arguments, "--cache", str(tmp_path / "facts")]) == 0
    rows = [json.loads(x) for x in run(capsys, snapshot, "can", "gspo", "--format", "jsonl").splitlines()]
    assert {r["framework"]: r["answer"] for r in rows} == {"toy": "yes", "other": "yes"}


@pytest.mark.parametrize(
    ("words", "rest"),
    [
        (["can", "--eps_clip", "--format", "json"], ["can", "--format", "json", "--", "--eps_clip"]),
        (["can", "--policy_loss_type", "gspo"], ["can", "--", "--policy_loss_type", "gspo"]),
        (["show", "--framework=x", "--a.b=c"], ["show", "--framework=x", "--", "--a.b=c"]),
        (["can", "-h"], ["can", "-h"]),
        (["log", "--option", "--*clip*", "--limit", "3"], ["log", "--option=--*clip*", "--limit", "3"]),
        (["log", "--option"], ["log", "--option"]),
        (["matrix"], ["matrix"]),
    ],
)
def test_options_of_frameworks_look_like_flags(words: list[str], rest: list[str]) -> None:
    from landed.cli.main import _names_like_flags

    assert _names_like_flags(words) == rest
