"""The experiments that there are, and the file that a name means.

Looked for in `./experiments`, beside the checkout that this package runs from, and where a wheel puts them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from opsmith.errors import UsageError
from opsmith_lab.evaluation.experiment import Experiment
from opsmith_lab.evaluation.reading import is_experiment, read_experiment

ALL = "all"  # the name that stands for every experiment of the paper


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
    """The experiment of that name or file, or those of a collection. Raises UsageError that lists the names."""
    files = list_experiments()
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        return (read_experiment(path),)
    if name in files:
        return (read_experiment(files[name]),)
    every = tuple(map(read_experiment, files.values()))
    collection = "" if name == ALL else name
    if of_collection := tuple(experiment for experiment in every if experiment.collection == collection):
        return of_collection
    raise UsageError(f"experiment {name!r}: no such name or file; {_suggest_name(name, files, every)}")


def _suggest_name(name: str, files: Mapping[str, Path], every: Sequence[Experiment]) -> str:
    near = get_close_matches(name, files, n=1)
    collections = sorted({experiment.collection or ALL for experiment in every})
    known = f"known: {', '.join(files)}; several at once: {', '.join(collections)}"
    listed = known if files else "there is no folder `experiments` here"
    return (f"did you mean {near[0]!r}? " if near else "") + listed
