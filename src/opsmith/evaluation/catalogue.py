"""The experiments that there are, and the file that a name means.

Looked for in `./experiments`, beside the checkout that this package runs from, and where a wheel puts them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from opsmith.errors import UsageError
from opsmith.evaluation.experiment import Experiment
from opsmith.evaluation.reading import is_experiment, read_experiment

ALL = "all"  # the name that stands for every experiment


def list_folders() -> tuple[Path, ...]:
    """Where experiments are looked for, first to last."""
    checkout = Path(__file__).resolve().parents[3] / "experiments"
    return Path("experiments"), checkout, Path(sys.prefix) / "share" / "opsmith" / "experiments"


def list_experiments() -> dict[str, Path]:
    """Every experiment's file by its name; of two with one name, the first that is found."""
    file_by_name: dict[str, Path] = {}
    for folder in list_folders():
        for file in sorted(folder.glob("*.toml")) if folder.is_dir() else ():
            if file.stem not in file_by_name and is_experiment(file):
                file_by_name[file.stem] = file
    return dict(sorted(file_by_name.items()))


def find_experiments(name: str) -> tuple[Experiment, ...]:
    """The experiment of that name or file, or all. Raises UsageError that lists the names."""
    files = list_experiments()
    if name == ALL and files:
        return tuple(map(read_experiment, files.values()))
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        return (read_experiment(path),)
    if name in files:
        return (read_experiment(files[name]),)
    raise UsageError(f"experiment {name!r}: no such name or file; {_suggest_name(name, files)}")


def _suggest_name(name: str, files: Mapping[str, Path]) -> str:
    near = get_close_matches(name, files, n=1)
    listed = f"known: {', '.join(files)}, {ALL}" if files else "there is no folder `experiments` here"
    return (f"did you mean {near[0]!r}? " if near else "") + listed
