"""Where imported problems are written: one file each, none over another's."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from opsmith.errors import TaskError
from opsmith.problems.files.canonical import write_problem
from opsmith.problems.files.reading import ProblemFile


@dataclass
class ProblemFolder:
    """A folder of problem files. Equal texts are written again as they are; another text of that name is a mistake,
    unless it may be replaced."""

    path: Path
    replaces: bool = False
    _written: dict[str, str] = field(default_factory=dict)  # file name -> source, of this import

    def write_problem(self, file: ProblemFile) -> Path:
        """The path of the file. Raises TaskError."""
        path = self.path / f"{file.name}.yaml"
        text = write_problem(file)
        source = file.problem.source.file if file.problem.source is not None else file.name
        if (before := self._written.get(path.name)) is not None:
            raise TaskError(f"{path}: already made of {before} in this import; expected problems of different names")
        if path.exists() and not self.replaces and path.read_bytes() != text.encode():
            raise TaskError(f"{path}: is there already and differs; try: --force, or another --out")
        self.path.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        self._written[path.name] = source
        return path
