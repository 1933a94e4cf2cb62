"""Which blocks has a page, and what is to be done with each?

    ```console                      commands behind "$ ", run in order in one shell; lines after a command are its
    $ opsmith tasks                 expected output, in which ... stands for anything; "# exit code 1" behind a
    ```                             command says that it ends so
    ```python                       is run
    ```yaml title="x_0.yaml"        any block with a title: is written to that file

Other blocks (formats, programs) are only shown. A block of the first two kinds is not run only where a comment stands
right before it and says why; readers do not see it:

    <!-- not run: it needs a key -->
    ```console
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
EXEMPT = re.compile(r"<!-- not run: (?P<reason>[^>]+?) -->$")

_BLOCK = re.compile(
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
_CODE = re.compile(r" *# exit code (\d+)$")


@dataclass(frozen=True)
class Command:
    """One command of a console block."""

    text: str
    expected: str  # "": anything
    code: int
    line: int  # of the page


@dataclass(frozen=True)
class Block:
    language: str
    title: str
    body: str
    line: int  # of the page, where the body begins
    exempt: str  # why it is not run; "": it is

    @property
    def runs(self) -> bool:
        return bool(self.title) or self.language in {"console", "python", "sh"}

    def commands(self) -> Iterator[Command]:
        """The commands of a console block."""
        lines = self.body.splitlines()
        begins = [at for at, line in enumerate(lines) if line.startswith("$ ")]
        assert begins[:1] == [0], f"line {self.line}: a console block begins with `$ `"
        for at, end in zip(begins, [*begins[1:], len(lines)], strict=True):
            last = next(row for row in range(at, end) if not lines[row].endswith("\\"))
            text = "\n".join([lines[at][2:], *lines[at + 1 : last + 1]])
            stated = _CODE.search(text)
            output = "\n".join(lines[last + 1 : end])
            yield Command(_CODE.sub("", text), output, int(stated[1]) if stated else 0, self.line + at)


def read_blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [_block(text, found) for found in _BLOCK.finditer(text)]


def _block(text: str, found: re.Match[str]) -> Block:
    reason = EXEMPT.search(text[: found.start()].rstrip())
    line = text.count("\n", 0, found.start()) + 2
    return Block(found["language"], found["title"] or "", found["body"], line, reason["reason"] if reason else "")


_MINUTE = re.compile(r"\d+ s  ")


def fits(expected: str, printed: str) -> bool:
    """Whether the output is the expected one: blank lines and trailing spaces apart, without the line a minute that says
    how far a slow machine is, and with ... for anything."""
    lines = [line.rstrip() for line in expected.splitlines() if line.strip()]
    wanted = "".join("(?:.*\n)*" if line.strip() == "..." else _pattern(line) + "\n" for line in lines)
    found = "".join(line.rstrip() + "\n" for line in printed.splitlines() if line.strip() and not _MINUTE.match(line))
    return re.fullmatch(wanted, found) is not None


def _pattern(line: str) -> str:
    """A line as a pattern; columns may be further apart than shown."""
    parts = [r"\s+".join(map(re.escape, re.split(r"\s+", part))) for part in line.strip().split("...")]
    return r"\s*" + ".*".join(parts)
