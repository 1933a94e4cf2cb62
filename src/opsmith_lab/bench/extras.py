"""How much an extra of the package adds to an installation: the files of its packages and of what those need."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

_PACKAGE = "opsmith"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_EXTRA = re.compile(r"""extra\s*==\s*["']([\w-]+)["']""")


def measure_extra(extra: str) -> int | None:
    """Bytes of what is installed of it here, without what the package itself needs; None: the package has no such
    extra, or one of its packages is not here."""
    own = list_requirements(extra)
    if not own or any(_find_distribution(name) is None for name in own):
        return None
    base = set(_list_needed(list_requirements("")))
    return sum(_count_bytes(name) for name in _list_needed(own) if name not in base)


def list_requirements(extra: str) -> list[str]:
    """The names of packages that an extra asks for; "": the package itself, without any."""
    checkout = Path(__file__).parents[3] / "pyproject.toml"
    if checkout.is_file():
        project = tomllib.loads(checkout.read_text("utf-8"))["project"]
        if project["name"] == _PACKAGE:
            lines = project["optional-dependencies"].get(extra, []) if extra else project["dependencies"]
            return [_read_name(line) for line in lines]
    return list(_list_direct(_PACKAGE, extra))


def _list_direct(name: str, extra: str = "") -> Iterator[str]:
    """What one distribution that is installed asks for."""
    distribution = _find_distribution(name)
    for line in (distribution.requires or ()) if distribution is not None else ():
        match = _EXTRA.search(line)
        if (match[1] if match else "") == extra:
            yield _read_name(line)


def _list_needed(names: Sequence[str]) -> Iterator[str]:
    """These and all that they need, as far as it is installed, each once."""
    waiting, visited = list(names), set[str]()
    while waiting:
        name = waiting.pop()
        if name in visited or _find_distribution(name) is None:
            continue
        visited.add(name)
        yield name
        waiting += _list_direct(name)


def _find_distribution(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def _count_bytes(name: str) -> int:
    distribution = _find_distribution(name)
    files = (distribution.files or ()) if distribution is not None else ()
    paths = {Path(str(file.locate())).resolve() for file in files}
    return sum(path.stat().st_size for path in paths if path.is_file())


def _read_name(requirement: str) -> str:
    """Normalised, as names of packages are compared."""
    match = _NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", match[0]).lower() if match else requirement
