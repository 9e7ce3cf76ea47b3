"""The shipped snapshot: dates that are known from the public record, and what every row must hold."""

from __future__ import annotations

import re
from collections import Counter
from datetime import date

import pytest

from landed.answers.lookup import rank
from landed.fields.load import defects, load
from landed.history.states import same_value
from landed.records.tables import TABLES, Event, Landing, OptionRow, Run
from landed.store import text

FRAMEWORKS = {"verl", "trl", "openrlhf", "nemo-rl", "roll", "slime", "areal"}


def table(name: str) -> list[object]:
    return list(text.read(text.SNAPSHOT, name))


LANDINGS: list[Landing] = table("landings")  # type: ignore[assignment]
EVENTS: list[Event] = table("events")  # type: ignore[assignment]

#: framework, method, commit, day of the committer's clock, bound: stated in the public record and opened by hand
KNOWN = [
    ("trl", "gspo", "2025-07-27", "exact"),
    ("verl", "gspo", "2025-07-30", "exact"),
    ("openrlhf", "gspo", "2025-07-30", "exact"),
    ("roll", "gspo", "2025-07-31", "exact"),
    ("slime", "gspo", "2025-07-31", "exact"),
    ("nemo-rl", "gspo", "2025-08-23", "exact"),
    ("areal", "gspo", "2025-11-04", "exact"),
    ("trl", "clip-higher", "2025-03-19", "exact"),
    ("nemo-rl", "kl-gradient-fix", "2026-06-24", "exact"),
    ("areal", "sao", "2025-05-26", "upper"),
    ("slime", "dual-clip", "2026-08-12", "exact"),
    ("verl", "opo", "2025-06-02", "exact"),
]


@pytest.mark.parametrize(("framework", "method", "day", "bound"), KNOWN)
def test_known_dates(framework: str, method: str, day: str, bound: str) -> None:
    first = min((x for x in LANDINGS if (x.framework, x.method) == (framework, method)), key=lambda x: x.committed_at)
    # the record gives the day on the committer's clock, the tables are in UTC
    assert abs((date.fromisoformat(first.committed_at[:10]) - date.fromisoformat(day)).days) <= 1
    assert first.bound == bound


def test_the_snapshot_is_whole_and_decided() -> None:
    assert text.check(text.SNAPSHOT) == []
    assert defects(load()) == []
    assert table("undecided") == []
    runs: list[Run] = table("runs")  # type: ignore[assignment]
    assert {r.framework for r in runs} == FRAMEWORKS
    assert {r.repo for r in runs} >= {"verl", "verl-recipe"}
    for name in TABLES:
        if name not in text.SPLIT:
            rows = text.read(text.SNAPSHOT, name)
            assert rows == text.ordered(rows)


def test_the_catalog_covers_the_field() -> None:
    field = load()
    assert len(field.methods) >= 110
    assert len(field.failures) == 13
    for m in field.methods.values():
        assert len(m.description) > 60, m.slug
        assert m.formula, m.slug
        assert (m.first_public == "") == (m.first_public_basis == "unknown"), m.slug
        assert re.fullmatch(r"(\d{4}-\d{2}(-\d{2})?)?", m.first_public), m.slug
    assert {x.method for x in LANDINGS} <= set(field.methods)
    assert len({x.method for x in LANDINGS}) >= 65


def test_every_row_can_be_opened() -> None:
    for row in (*LANDINGS, *EVENTS):
        assert re.fullmatch(r"[0-9a-f]{40}", row.commit)
        assert row.path
        assert int(row.line) >= 1
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row.committed_at)
        assert (row.bound == "upper") == bool(row.bound_reason)
    for x in LANDINGS:
        assert x.declared_at <= x.committed_at
        assert bool(x.removed_commit) == (x.head_option == "")


def test_events_and_options_agree() -> None:
    """Adding up the events of an option gives what the head declares."""
    options: list[OptionRow] = table("options")  # type: ignore[assignment]
    head = {(o.framework, o.repo, o.option): o for o in options}
    by_option: dict[tuple[str, str, str], list[Event]] = {}
    for e in EVENTS:
        by_option.setdefault((e.framework, e.repo, e.option), []).append(e)
    renamed_away = {(e.framework, e.repo, e.before) for e in EVENTS if e.change == "renamed"}
    checked = 0
    for key, events in by_option.items():
        changes = Counter(e.change for e in events)
        balance = changes["choice_added"] - changes["choice_removed"]
        if changes["renamed"] == 0 and key not in renamed_away and balance > 0:
            assert key in head, key
            checked += 1
        last = [e for e in sorted(events, key=lambda e: e.committed_at) if e.change == "default_changed"]
        if last and key in head and key not in renamed_away and changes["removed"] == 0 and head[key].default:
            assert same_value(last[-1].after, head[key].default), key
    assert checked > 100


def test_best_route_is_offered_now_if_any_is() -> None:
    rows = [{c: getattr(x, c) for c in x.__struct_fields__} for x in LANDINGS]
    for framework in FRAMEWORKS:
        mine = sorted((r for r in rows if r["framework"] == framework), key=rank)
        seen_removed = False
        for r in mine:
            seen_removed |= bool(r["removed_commit"])
            assert not (seen_removed and not r["removed_commit"])


#: framework, method, first release whose own tree has it: opened by hand in the tags
FIRST_RELEASES = [
    ("trl", "gspo", "0.20.0"), ("verl", "gspo", "0.6.0"), ("openrlhf", "gspo", "0.8.8"), ("areal", "gspo", "0.4.0"),
    ("verl", "clip-higher", "0.4.0"), ("trl", "tis", "0.23.0"),
]  # fmt: skip


@pytest.mark.parametrize(("framework", "method", "version"), FIRST_RELEASES)
def test_first_releases(framework: str, method: str, version: str) -> None:
    mine = [x for x in LANDINGS if (x.framework, x.method) == (framework, method) and x.release]
    assert min(mine, key=lambda x: x.released_at).release == version


def test_known_defects_cover_the_releases_that_have_them() -> None:
    found = {(d.framework, d.defect): d for d in table("defects")}  # type: ignore[attr-defined]
    swapped = found["trl", "scale-rewards-swapped"]
    assert swapped.releases == "0.22.0 0.22.1"  # type: ignore[attr-defined]
    assert "lite-ppo" in swapped.methods.split()  # type: ignore[attr-defined]
    assert found["slime", "not-read:--eps-clip-c"].until.startswith("2026-08-1")  # type: ignore[attr-defined]


def test_a_method_is_not_hidden_by_a_folder_of_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    from landed.cli.main import main

    assert any(o.option == "dapo" for o in table("options"))  # type: ignore[attr-defined]
    assert main(["show", "dapo"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("DAPO")
    assert "openrlhf" in out
