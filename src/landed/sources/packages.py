"""Released packages as trees: an index's wheel or sdist is opened, never installed or imported."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from landed.errors import SourceError

MAX_FILE = 4_000_000
MAX_FILES = 50_000
_DATA = re.compile(r"\A[^/]+\.data/(?:purelib|platlib)/")


class Package:
    """Text files of one release: path (without the archive's top folder) to bytes."""

    def __init__(self, name: str, version: str, files: dict[str, bytes], archive: str) -> None:
        self.name, self.version, self.files, self.archive = name, version, files, archive


def fetch(requirement: str) -> Package:
    """Download one release with pip (no dependencies, nothing built) and open it.

    A wheel is taken if there is one, else the sdist. Raises SourceError without network or release.
    """
    path = Path(requirement)
    if path.suffix in (".whl", ".gz", ".zip") and path.exists():
        return open_archive(path)
    with tempfile.TemporaryDirectory() as folder:
        pip = [
            sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-input",
            "--retries", "1", "--timeout", "20", "--dest", folder,
        ]  # fmt: skip
        wheel = [*pip, "--only-binary=:all:", "--no-build-isolation", "--ignore-requires-python", requirement]
        done = subprocess.run(wheel, capture_output=True, text=True, check=False, env={**os.environ, "PIP_NO_COLOR": "1"})
        archives = sorted(Path(folder).iterdir())
        if not archives:
            last = [x for x in done.stderr.splitlines() if x.startswith("ERROR")]
            why = last[-1].removeprefix("ERROR: ") if last else "pip brought nothing"
            raise SourceError(
                f"no release of {requirement} could be had: {why}", mend="check the name, the version and the network"
            )
        return open_archive(archives[0])


def open_archive(path: Path) -> Package:
    """A wheel or sdist on disk. Links and files above ``MAX_FILE`` bytes are left out."""
    files: dict[str, bytes] = {}
    try:
        if path.suffix in (".whl", ".zip"):
            with zipfile.ZipFile(path) as z:
                for info in z.infolist()[:MAX_FILES]:
                    if not info.is_dir() and info.file_size <= MAX_FILE:
                        # a wheel for one platform may keep its code under NAME.data/purelib/
                        files[_DATA.sub("", info.filename)] = z.read(info)
            name, version = path.name.split("-")[:2]
        else:
            with tarfile.open(fileobj=io.BytesIO(path.read_bytes())) as t:
                for member in t.getmembers()[:MAX_FILES]:
                    if member.isfile() and member.size <= MAX_FILE:
                        source = t.extractfile(member)
                        assert source is not None
                        files[member.name.partition("/")[2]] = source.read()
            stem = path.name.removesuffix(".tar.gz").removesuffix(".zip")
            name, _, version = stem.rpartition("-")
    except (zipfile.BadZipFile, tarfile.TarError, OSError) as e:
        raise SourceError(f"{path} is not a wheel or sdist that can be opened: {e}", mend="download it again") from None
    return Package(name, version, files, path.name)
