"""Parse the command line and run one command. Exit codes: 0 done, 1 found problems, 2 used wrongly, 3 a source failed."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from landed import __version__
from landed.errors import LandedError

FORMATS = ("table", "json", "jsonl", "csv", "md")

#: command -> (module, function, help)
COMMANDS: dict[str, tuple[str, str, str]] = {
    "can": ("landed.cli.facts", "can", "whether frameworks offer a method, since when, and what to write"),
    "show": ("landed.cli.facts", "show", "everything known of a method, an option or a framework"),
    "matrix": ("landed.cli.facts", "matrix", "methods by frameworks"),
    "landings": ("landed.cli.facts", "landings", "when methods landed"),
    "log": ("landed.cli.facts", "log", "events of option histories, newest first"),
    "releases": ("landed.cli.versions", "releases", "releases of the frameworks, each read as a tree of its own"),
    "diff": ("landed.cli.versions", "diff", "what changes between two versions of a framework"),
    "export": ("landed.cli.facts", "export", "a whole table, or its schema"),
    "replay": ("landed.cli.build", "replay", "replay repositories and write the snapshot"),
    "sync": ("landed.cli.build", "sync", "make or update local clones of the frameworks' repositories"),
    "validate": ("landed.cli.build", "validate", "check the field's data and the snapshot; fails on unmapped options"),
    "package": ("landed.cli.build", "package", "read the options of a released package and hold the snapshot against it"),
}


def _facts_arguments(p: argparse.ArgumentParser) -> None:
    p.add_argument("--format", choices=FORMATS, default="table", help="default: table")
    p.add_argument(
        "--snapshot", metavar="DIR", default=os.environ.get("LANDED_SNAPSHOT", ""), help="another snapshot than the shipped one"
    )


def _field_arguments(p: argparse.ArgumentParser) -> None:
    p.add_argument("--field", default="llm_rl", help="the field (default: llm_rl)")
    p.add_argument("--fields", metavar="DIR", default="", help="folder of fields, for a field of your own")


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog="landed",
        description="Which published reinforcement-learning methods have landed in the training frameworks people use.",
        epilog="exit codes: 0 done, 1 found problems, 2 used wrongly, 3 a source failed",
    )
    parser.add_argument("--version", action="version", version=f"landed {__version__}")
    sub = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    made = {name: sub.add_parser(name, help=help_, description=help_) for name, (_, _, help_) in COMMANDS.items()}
    for name in ("can", "show", "matrix", "landings", "log", "releases", "diff", "export"):
        _facts_arguments(made[name])
    made["can"].add_argument("method", nargs="+", help="a method, an option, an arXiv number")
    made["can"].add_argument("--framework", default="", metavar="F[==V]", help="only this framework, or one version of it")
    made["releases"].add_argument("framework", nargs="?", default="", metavar="FRAMEWORK")
    made["releases"].add_argument("--method", default="", metavar="M", help="only the first release that offers this method")
    made["diff"].add_argument("before", metavar="F==A", help="a version, e.g. verl==0.5.0")
    made["diff"].add_argument("after", metavar="F==B", help="another version of it; F==main is the head of the main branch")
    made["diff"].add_argument("--methods", action="store_true", help="only options that are mapped to a method")
    made["diff"].add_argument("--config", default="", metavar="FILE", help="only what touches this config file or run script")
    made["show"].add_argument("name", nargs="+", help="a method, an option or a framework")
    made["matrix"].add_argument("--failure", default="", help="only methods that address this failure")
    made["matrix"].add_argument("--all", action="store_true", help="also methods that no framework offers")
    for name in ("landings", "log"):
        made[name].add_argument("--framework", default="", metavar="F")
        made[name].add_argument("--method", default="", metavar="M")
        made[name].add_argument("--since", default="", metavar="DATE", help="from this day on (YYYY-MM-DD)")
        made[name].add_argument("--until", default="", metavar="DATE", help="before this day")
    made["landings"].add_argument("--bound", choices=("exact", "upper"), default="")
    made["log"].add_argument("--option", default="", metavar="NAME", help="option, shell patterns allowed")
    made["log"].add_argument("--change", default="", help="only this kind of event")
    made["log"].add_argument("--limit", type=int, default=0, metavar="N", help="at most N rows (default: all; 40 on a terminal)")
    made["export"].add_argument("table", nargs="?", default="", help="one of the tables: events, landings, options, methods …")
    made["export"].add_argument(
        "--schema", default="", metavar="NAME", help="JSON Schema of a table, or of a data file: framework, method, failure"
    )
    made["export"].add_argument("--sqlite", default="", metavar="FILE", help="write the compiled SQLite file here")
    for name in ("replay", "sync", "validate", "package"):
        _field_arguments(made[name])
    for name in ("replay", "sync", "validate"):
        made[name].add_argument("frameworks", nargs="*", metavar="FRAMEWORK", help="default: all")
        made[name].add_argument(
            "--repo", action="append", default=[], metavar="NAME=PATH", help="a local repository, or NAME=URL for sync"
        )
        made[name].add_argument("--store", default="", metavar="DIR", help="where clones are kept")
    for name in ("replay", "validate"):
        made[name].add_argument("--cache", default="", metavar="DIR", help="where facts of blobs are kept")
        made[name].add_argument("--workers", type=int, default=0, metavar="N", help="processes (default: one a core)")
    made["replay"].add_argument("--no-cache", action="store_true", help="read everything again and keep nothing")
    made["replay"].add_argument("--out", default="", metavar="DIR", help="snapshot to write (default: the shipped one)")
    made["replay"].add_argument("--allow-unmapped", action="store_true", help="write the snapshot although options are undecided")
    made["validate"].add_argument("--replay", action="store_true", help="replay the repositories to look for undecided options")
    made["validate"].add_argument("--snapshot", default="", metavar="DIR")
    made["package"].add_argument("name", help="package on the index, e.g. trl or trl==1.7.1; or a wheel or sdist on disk")
    made["package"].add_argument("--framework", default="", help="the framework, if its name is not the package's")
    made["package"].add_argument("--format", choices=FORMATS, default="table")
    made["package"].add_argument("--snapshot", default="", metavar="DIR")
    return parser


#: flags of can and show that are the program's own
_OWN = ("--format", "--snapshot", "--framework", "--help")


def _names_like_flags(argv: list[str]) -> list[str]:
    """Options of frameworks look like flags: ``landed can --eps_clip`` and ``landed log --option "--*clip*"`` mean names."""
    if argv[:1] == ["log"] and "--option" in argv[:-1]:
        at = argv.index("--option")
        return [*argv[:at], f"--option={argv[at + 1]}", *argv[at + 2 :]]
    if argv[:1] in (["can"], ["show"]) and "--" not in argv:
        own, names, rest = [argv[0]], [], iter(argv[1:])
        for a in rest:
            flag = a.startswith("--") and any(o.startswith(a.partition("=")[0]) for o in _OWN)
            if not flag and a != "-h":
                names.append(a)
                continue
            own.append(a)
            if flag and "=" not in a and not "--help".startswith(a):
                own += [x for x in [next(rest, None)] if x is not None]
        return [*own, *(["--", *names] if names else [])]
    return argv


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = build_parser().parse_args(_names_like_flags(list(sys.argv[1:] if argv is None else argv)))
    module, function, _ = COMMANDS[arguments.command]
    try:
        code: int = getattr(importlib.import_module(module), function)(arguments)
        sys.stdout.flush()
        return code
    except LandedError as e:
        print(f"landed: {e}", file=sys.stderr)
        return e.code
    except BrokenPipeError:
        # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("landed: stopped; what was kept so far is kept", file=sys.stderr)
        return 3
