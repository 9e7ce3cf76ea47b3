"""Files of a field are read as people write them."""

from __future__ import annotations

from pathlib import Path

from landed.fields.load import Mapping, read_file


def test_on_is_a_key_and_only_true_and_false_are_booleans(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text("{method: a, options: [--no, yes, off], on: nonzero, unread: true}\n")
    made = read_file(path, Mapping)
    assert (made.options, made.on, made.unread) == (["--no", "yes", "off"], "nonzero", True)
