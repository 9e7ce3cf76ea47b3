"""Replay all repositories of a field and derive every table; one worker process a repository."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import msgspec

from landed.fields.load import Field, Framework, load
from landed.history.cache import Cache
from landed.history.replay import Plan, replay
from landed.landings.defects import defects
from landed.landings.derive import Derived, Deriver
from landed.landings.inner import InnerCommits
from landed.landings.releases import Releases
from landed.records.tables import FailureRow, FrameworkRow, MethodRow, Record, Run, Undecided
from landed.sources.git import Repo, Tag, iso

CODE = Path(__file__).parent.parent
DEFAULT_NOT_READERS = ["tests/**", "test/**", "**/tests/**", "docs/**", "doc/**", "**/test_*.py", "**/conftest.py", "setup.py"]


class Job(msgspec.Struct, frozen=True):
    """One repository to replay. ``path`` is a local git directory."""

    field: str
    field_root: str
    framework: str
    repo: str
    path: str
    cache: str


class Done(msgspec.Struct):
    job: Job
    derived: Derived
    run: Run
    seconds: float
    #: whether anything had to be read or derived now
    fresh: bool = True


class Result(msgspec.Struct):
    tables: dict[str, list[Record]]
    undecided: list[Undecided]
    done: list[Done]


def plan(framework: Framework, repo: str) -> Plan:
    """What to read in one repository of a framework."""
    spec = framework.repo(repo)
    return Plan(framework.rules(repo), spec.readers, DEFAULT_NOT_READERS + spec.not_readers)


def stamp_of(job: Job, head: str, tags: list[Tag]) -> str:
    """Digest of all that a repository's rows depend on: this code, the field's data, the head, the tags."""
    heads = "\n".join([head, *(f"{t.name} {t.commit}" for t in tags)])
    return hashlib.sha256(
        "\0".join((_digest(CODE, ("*.py",)), _digest(Path(job.field_root) / job.field, ("*.yaml",)), heads)).encode()
    ).hexdigest()


@functools.cache
def _digest(folder: Path, patterns: tuple[str, ...]) -> str:
    made = hashlib.sha256()
    for path in sorted(p for pattern in patterns for p in folder.rglob(pattern)):
        made.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return made.hexdigest()


def kept(job: Job) -> Done | None:
    """Rows of a repository as they were derived last time, if nothing has changed since."""
    begin = time.perf_counter()
    if not job.cache or not Path(job.cache).exists():
        return None
    repo = Repo(job.path)
    stamp = stamp_of(job, repo.head(), repo.tags())
    with Cache(Path(job.cache)) as cache:
        data = cache.derived(stamp)
    if data is None:
        return None
    try:
        derived, run = msgspec.msgpack.decode(data, type=tuple[Derived, Run])
    except msgspec.MsgspecError:
        return None
    return Done(job, derived, run, time.perf_counter() - begin, fresh=False)


def run_one(job: Job) -> Done:
    """Replay and derive one repository."""
    begin = time.perf_counter()
    field = load(job.field, Path(job.field_root))
    framework = field.frameworks[job.framework]
    repo = Repo(job.path)
    history = replay(repo, plan(framework, job.repo), Path(job.cache) if job.cache else None)
    releases = Releases(field, framework, job.repo, history)
    deriver = Deriver(field, framework, job.repo, history, releases)
    derived = deriver.derive(InnerCommits(repo, deriver.rules, history))
    derived.defects = defects(deriver, releases)
    run = Run(
        job.framework, job.repo, framework.repo(job.repo).url, history.head,
        iso(history.commits[-1].committed) if history.commits else "", str(len(history.commits)), str(history.blobs),
        str(history.declaring), str(len(derived.options)), str(len(derived.events)), str(len(derived.landings)),
        str(len({p.blob for p in derived.problems})),
    )  # fmt: skip
    if job.cache:
        with Cache(Path(job.cache)) as cache:
            cache.put_derived(stamp_of(job, history.head, history.releases.tags), msgspec.msgpack.encode((derived, run)))
    return Done(job, derived, run, time.perf_counter() - begin)


def run_all(jobs: list[Job], *, workers: int | None = None, progress: Callable[[Done], None] | None = None) -> Result:
    """Replay every job. Rows are gathered in job order, so the number of workers changes no byte."""
    done: dict[Job, Done] = {job: made for job in jobs if (made := kept(job))}
    todo = [job for job in jobs if job not in done]
    count = min(workers or os.cpu_count() or 1, len(todo))
    if count <= 1:
        for job in todo:
            done[job] = run_one(job)
            if progress:
                progress(done[job])
    else:
        sized = sorted(todo, key=lambda j: -_size(Path(j.path)))
        # a forked worker has the field's data loaded already
        start = "fork" if sys.platform == "linux" else "spawn"
        with ProcessPoolExecutor(count, mp_context=get_context(start)) as pool:
            futures = {pool.submit(run_one, job): job for job in sized}
            for future in as_completed(futures):
                made = future.result()
                done[futures[future]] = made
                if progress:
                    progress(made)
    tables: dict[str, list[Record]] = {
        "events": [], "landings": [], "routes": [], "options": [], "problems": [], "runs": [],
        "releases": [], "offers": [], "release_options": [],
        "defects": [],
    }  # fmt: skip
    undecided: list[Undecided] = []
    for job in jobs:
        made = done[job]
        tables["events"] += made.derived.events
        tables["landings"] += made.derived.landings
        tables["routes"] += made.derived.routes
        tables["options"] += made.derived.options
        tables["problems"] += made.derived.problems
        tables["releases"] += made.derived.releases
        tables["offers"] += made.derived.offers
        tables["defects"] += made.derived.defects
        tables["release_options"] += made.derived.release_options
        tables["runs"].append(made.run)
        undecided += made.derived.undecided
    tables["undecided"] = list(undecided)
    return Result(tables, undecided, [done[j] for j in jobs])


def catalog_tables(field: Field) -> dict[str, list[Record]]:
    """The catalog as tables."""
    methods: list[Record] = [
        MethodRow(
            m.slug, m.name, "; ".join(m.aliases), "; ".join(s.arxiv or s.url for s in m.sources), m.first_public,
            m.first_public_basis, m.form, " ".join(m.failures), m.modality, " ".join(m.parts), m.description.strip(),
            m.formula, m.note.strip(),
        )
        for m in field.methods.values()
    ]  # fmt: skip
    failures: list[Record] = [
        FailureRow(f.slug, f.name, f.name_zh, f.description.strip(), "; ".join(f.symptoms)) for f in field.failures.values()
    ]
    frameworks: list[Record] = [
        FrameworkRow(f.framework, f.title, r.name, r.url, f.pypi, f.style) for f in field.frameworks.values() for r in f.repos
    ]
    return {"methods": methods, "failures": failures, "frameworks": frameworks}


def _size(path: Path) -> int:
    return sum(p.stat().st_size for p in (path / "objects" / "pack").glob("*.pack")) if path.exists() else 0
