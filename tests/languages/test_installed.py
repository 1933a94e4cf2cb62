"""What people install: a wheel, built from the source distribution, runs the main commands without the checkout.

Nothing is downloaded: the packages of this environment are linked into the new one, and only those that `pip install`
would bring, so that a missing dependency is noticed.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tomllib
import urllib.request
import venv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path
from subprocess import PIPE, STDOUT

import pytest
from packaging.requirements import Requirement

CHECKOUT = Path(__file__).parents[2]
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
TREES = ("src", "docs", "tests", "experiments", ".ci")
BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"
LANGUAGES = ("c", "cuda", "wgsl")


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, and a folder that holds nothing of ours, in which its commands are run."""

    place: Path
    folder: Path

    @property
    def command(self) -> Path:
        return self.place / "bin" / "opsmith"

    @property
    def variables(self) -> dict[str, str]:
        return {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def link_packages(self, *requirements: str) -> None:
        """What pip would install for these, as links to what is installed here."""
        for source, place in self.list_missing(requirements):
            place.symlink_to(source)

    def copy_packages(self, *requirements: str) -> None:
        """The same as copies: what a worker imports when it is confined must lie in its own environment."""
        for source, place in self.list_missing(requirements):
            shutil.copytree(source, place) if source.is_dir() else shutil.copy(source, place)

    def list_missing(self, requirements: Iterable[str]) -> Iterator[tuple[Path, Path]]:
        """Where it is installed here, and where it belongs."""
        (site,) = self.place.glob("lib/python*/site-packages")
        for package in close_over(requirements):
            for top in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
                if not (site / top).exists():
                    yield Path(package.locate_file(top)).absolute(), site / top

    def run(self, *words: str | Path, code: int = 0) -> str:
        """What it prints, or what it says where it cannot work."""
        process = subprocess.run(
            words, cwd=self.folder, env=self.variables, capture_output=True, text=True, check=False
        )
        assert process.returncode == code, f"{words}: {process.stdout}{process.stderr}"
        return process.stderr if code else process.stdout

    def opsmith(self, *words: str) -> str:
        return self.run(self.command, *words)

    def refuse(self, *words: str) -> str:
        """What a command says that cannot work."""
        return self.run(self.command, *words, code=2)

    def python(self, *words: str) -> str:
        return self.run(self.place / "bin" / "python", *words)


def close_over(requirements: Iterable[str]) -> Iterator[Distribution]:
    """The packages that these mean, and what those require, each once."""
    waiting, met = [Requirement(text) for text in requirements], set[tuple[str, frozenset[str]]]()
    while waiting:
        wish = waiting.pop()
        key = wish.name.lower().replace("_", "-"), frozenset(wish.extras)
        if key in met or (wish.marker is not None and not wish.marker.evaluate({"extra": ""})):
            continue
        met.add(key)
        package = distribution(wish.name)
        yield package
        for further in map(Requirement, package.requires or ()):
            extras = {"", *wish.extras}
            if further.marker is None or any(further.marker.evaluate({"extra": extra}) for extra in extras):
                further.marker = None
                waiting.append(further)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked."""
    tree, folder = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("sdist")
    for name in TREES:
        shutil.copytree(CHECKOUT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for file in (path for path in CHECKOUT.iterdir() if path.is_file()):
        shutil.copy(file, tree)
    subprocess.run([sys.executable, "-c", BUILD, "build_sdist", folder], cwd=tree, check=True, capture_output=True)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    return next(path for path in folder.iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def installed(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    wheels, place, folder = (tmp_path_factory.mktemp(name) for name in ("wheel", "environment", "empty"))
    subprocess.run([sys.executable, "-c", BUILD, "build_wheel", wheels], cwd=sources, check=True, capture_output=True)
    venv.create(place, with_pip=False, symlinks=True)
    install = [sys.executable, "-m", "pip", "--python", place / "bin" / "python", "install", "--no-index", "--no-deps"]
    subprocess.run([*install, *wheels.glob("*.whl")], check=True, capture_output=True)
    fresh = Installed(place, folder)
    fresh.link_packages(*PROJECT["dependencies"])
    return fresh


def test_the_source_distribution_has_what_its_reader_needs(sources: Path) -> None:
    named = [
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "CITATION.cff",
        "Makefile",
        "docs/installing.md",
        "tests/conftest.py",
    ]
    assert [name for name in named if not (sources / name).is_file()] == []
    assert list(sources.rglob("*.pyc")) == []


def test_the_package_alone_writes_judges_and_shows(installed: Installed) -> None:
    assert str(installed.place) in installed.python("-c", "import opsmith; print(opsmith.__file__)")
    assert installed.opsmith("--version").startswith("opsmith ")
    assert {"bmm_0", "softmax"} <= {row["task"] for row in json.loads(installed.opsmith("tasks", "--json"))}
    assert "anthropic/NAME" in installed.opsmith("models")
    assert "fig2" in installed.opsmith("experiment")
    assert "bmm_0: passed" in installed.opsmith("verify", "bmm_0")
    installed.opsmith("codegen", "bmm_0", "-o", "test_bmm_0.py")
    installed.link_packages("pytest")
    assert " passed" in installed.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_bmm_0.py")
    settings = ["--samples", "4", "--max-rounds", "1", "--workers", "1", "--no-report"]
    installed.opsmith("run", "--model", "embedded", "--tasks", "index_0,gemm_0", *settings)
    (run,) = json.loads(installed.opsmith("runs", "--json"))
    assert run["solved"] >= 1
    installed.opsmith("report", run["run"], "-o", "report.html")
    assert "<svg" in (installed.folder / "report.html").read_text("utf-8")
    installed.opsmith("export", run["run"], "--library", "library")
    assert list((installed.folder / "library").rglob("*.py"))
    assert "try: pip install 'opsmith[ui]'" in installed.refuse("ui", "runs")
    installed.link_packages(*PROJECT["optional-dependencies"]["ui"])
    assert b"embedded" in read_live_page(installed)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_of_each_language_is_judged_with_its_extra_and_none_other(
    installed: Installed, language: str
) -> None:
    assert f"try: pip install 'opsmith[{language}]'" in installed.refuse("verify", "softmax", "--target", language)
    installed.copy_packages(*PROJECT["optional-dependencies"][language])
    assert "softmax: passed" in installed.opsmith("verify", "softmax", "--target", language)


def read_live_page(installed: Installed) -> bytes:
    command = [installed.command, "ui", "runs", "--port", "0"]
    with subprocess.Popen(
        command, cwd=installed.folder, env=installed.variables, stdout=PIPE, stderr=STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        try:
            address = next(word for line in process.stdout for word in line.split() if word.startswith("http://"))
            with urllib.request.urlopen(address, timeout=30) as page:
                content: bytes = page.read()
                return content
        finally:
            process.send_signal(signal.SIGINT)
