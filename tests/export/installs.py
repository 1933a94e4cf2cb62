"""Places where a package is installed and tested without Opsmith: a folder of packages, and Python that sees no other."""

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

PIP = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation")


def link_packages(folder: Path, *names: str) -> Path:
    """A new folder with these distributions and all they need, as links."""
    folder.mkdir()
    for path in _list_needed(*names):
        (folder / path.name).exists() or (folder / path.name).symlink_to(path)
    return folder


def _list_needed(*names: str) -> Iterator[Path]:
    """The files and folders of these distributions and all they need, and of no other."""
    pending, seen = list(names), set()
    while pending:
        distribution = metadata.distribution(pending.pop())
        if distribution.name in seen:
            continue
        seen.add(distribution.name)
        requirements = [Requirement(text) for text in distribution.requires or ()]
        pending += [own.name for own in requirements if own.marker is None or own.marker.evaluate({"extra": ""})]
        tops = {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}
        yield from (Path(distribution.locate_file(top)) for top in tops)


def install_package(folder: Path, packages: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Build a package and put it among others, without a network."""
    command = [*PIP, "--target", str(packages), "--upgrade", str(folder)]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)


def run_python(*command: str, cwd: Path, packages: Path) -> subprocess.CompletedProcess[str]:
    """Python without site-packages, but with that folder."""
    variables = {**os.environ, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-S", *command], cwd=cwd, env=variables, capture_output=True, text=True, check=False
    )
