"""A released package is a tree like any other: opened, never installed or imported."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from conftest import Tree
from small import CONFIG, field_with

from landed.cli.main import main
from landed.errors import SourceError
from landed.sources.packages import open_archive

LOSS = '@register_loss("gspo", "fresh")\ndef f(): ...\nraise SystemExit("imported")\n'


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "toy-1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("toy/loss.py", LOSS)
        z.writestr("toy/args.py", "p.add_argument('--lr', default=0.2)\n")
    return path


def test_wheel_against_the_snapshot(wheel: Path, tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = field_with(tmp_path / "fields", {**CONFIG, "pypi": "toy"})
    tree.commit({"toy/loss.py": '@register_loss("gspo")\ndef f(): ...\n', "toy/args.py": "p.add_argument('--lr', default=0.1)\n"})
    field = ["--field", "toy_field", "--fields", str(root)]
    snapshot = str(tmp_path / "snapshot")
    assert main(["replay", *field, "--repo", f"toy={tree.path}", "--out", snapshot, "--no-cache"]) == 0
    capsys.readouterr()
    assert main(["package", str(wheel), *field, "--snapshot", snapshot, "--format", "csv"]) == 0
    rows = {line.split(",")[0]: line.split(",")[1] for line in capsys.readouterr().out.splitlines()[1:]}
    assert rows == {
        "loss.mode=fresh": "only in package",
        "--lr": "other default",
        "loss.mode=gspo": "same",
    }  # an option known by its values has no row of its own


def test_sdist_paths_lose_their_top_folder(tmp_path: Path) -> None:
    path = tmp_path / "toy-1.2.tar.gz"
    with tarfile.open(path, "w:gz") as t:
        info = tarfile.TarInfo("toy-1.2/toy/loss.py")
        info.size = len(LOSS)
        t.addfile(info, io.BytesIO(LOSS.encode()))
        link = tarfile.TarInfo("toy-1.2/toy/link.py")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        t.addfile(link)
    made = open_archive(path)
    assert (made.name, made.version, list(made.files)) == ("toy", "1.2", ["toy/loss.py"])


def test_broken_archives_and_unknown_packages(tmp_path: Path, wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "toy-1.0-py3-none-any.whl"
    bad.write_bytes(b"no zip")
    with pytest.raises(SourceError, match="not a wheel"):
        open_archive(bad)
    root = field_with(tmp_path / "fields", CONFIG)
    assert main(["package", str(wheel), "--field", "toy_field", "--fields", str(root)]) == 2
    assert "--framework" in capsys.readouterr().err
