"""The documentation's commands are run; what it shows is what they print."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
spec = importlib.util.spec_from_file_location("readme", ROOT / "scripts" / "readme.py")
assert spec
assert spec.loader
readme = importlib.util.module_from_spec(spec)
spec.loader.exec_module(readme)


@pytest.mark.parametrize("name", readme.PAGES)
def test_documented_output_is_real(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert "$ landed" in text
    assert readme.page(text) == text


def test_every_kind_of_rule_and_command_is_documented() -> None:
    from landed.cli.main import COMMANDS
    from landed.options.rules import READER_OF

    files = (ROOT / "docs" / "framework-files.md").read_text("utf-8")
    assert [k for k in READER_OF if f"| `{k}` |" not in files] == []
    page = (ROOT / "README.md").read_text("utf-8")
    assert [c for c in COMMANDS if f"landed {c}" not in page] == []
