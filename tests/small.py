"""A made-up framework for tests, and short ways to replay it."""

from __future__ import annotations

from pathlib import Path

import yaml

from landed.fields.load import load
from landed.landings.run import Derived, Job, run_one  # type: ignore[attr-defined]

CONFIG = {
    "framework": "toy",
    "title": "Toy",
    "repos": [{"name": "toy", "url": "https://example.org/toy"}],
    "declarations": [
        {
            "id": "config",
            "kind": "fields",
            "paths": ["toy/config.py", "toy/base.py", "experimental/**/*.py"],
            "classes": ["*Config"],
            "prefix": "loss",
        },
        {"id": "args", "kind": "argparse", "paths": ["toy/args.py"]},
        {"id": "losses", "kind": "registry", "paths": ["toy/**/*.py"], "names": ["register_loss"], "option": "loss.mode"},
        {"id": "recipes", "kind": "folder", "paths": ["recipe/**/*.py"], "prefix": "recipe/"},
        {"id": "fixed-gradient", "kind": "marker", "paths": ["toy/loss.py"], "pattern": r"def kl\(.*?score_function"},
    ],
    "tiers": [{"paths": ["recipe/**"], "tier": "recipe"}, {"paths": ["experimental/**"], "tier": "experimental"}],
    "methods": [
        {"method": "clip-higher", "options": ["loss.eps_high", "loss.clip_high"], "on": "nonnull"},
        {"method": "gspo", "options": ["loss.mode=gspo"]},
        {"method": "dual-clip", "options": ["--dual-clip"]},
        {"method": "kl-gradient-fix", "options": ["(fixed-gradient)"]},
        {"method": "dapo", "options": ["recipe/dapo"]},
    ],
    "set_aside": [{"options": ["loss.lr", "--lr", "loss.mode=vanilla"], "reason": "plain hyper-parameter"}],
}


def field_with(folder: Path, *frameworks: dict[str, object]) -> Path:
    """A field folder that holds the given frameworks and the methods that they map."""
    base = folder / "toy_field"
    (base / "frameworks").mkdir(parents=True, exist_ok=True)
    (base / "methods").mkdir(exist_ok=True)
    slugs = set()
    for made in frameworks:
        (base / "frameworks" / f"{made['framework']}.yaml").write_text(yaml.safe_dump(made))
        slugs |= {m["method"] for m in made.get("methods", [])}  # type: ignore[attr-defined,index]
    for slug in slugs:
        entry = {
            "slug": slug,
            "name": slug.upper(),
            "form": "new-loss",
            "description": "d",
            "first_public": "2023-11-01",
            "first_public_basis": "reference",
        }
        (base / "methods" / f"{slug}.yaml").write_text(yaml.safe_dump(entry))
    (base / "failures.yaml").write_text("failures: []\n")
    load.cache_clear()
    return folder


def derive(repo: Path, folder: Path, config: dict[str, object] = CONFIG, cache: Path | None = None) -> Derived:
    """Replay one repository of the made-up framework."""
    root = field_with(folder, config)
    load.cache_clear()
    name = str(config["repos"][0]["name"])  # type: ignore[index]
    return run_one(Job("toy_field", str(root), str(config["framework"]), name, str(repo), str(cache) if cache else "")).derived
