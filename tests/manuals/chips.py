"""What the tests ask of the made-up chips: problems, what each needs of the manual, and a reader of prompts.

python -m manuals.chips     # in tests/: how many of the needed sections are in prompts, by manual, form and budget
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from manuals import fulmar, kestrel, morrow, petrel, tamarisk

HERE = Path(__file__).parent
BUDGETS = (1000, 3000, 6000)  # tokens
# reference of x [M, N] (and w [N]); the operations of a program, r1 at first, with the register that each makes
PROBLEMS = {
    "row_total": ("x.sum(-1)", "sum r2 r1"),
    "row_peak": ("x.amax(-1)", "max r2 r1"),
    "prefix": ("x.cumsum(-1)", "scan r2 r1"),
    "mirror": ("x.flip(-1)", "flip r2 r1"),
    "turned": ("x.roll(2, -1)", "roll r2 r1 2"),
    "gate": ("x * torch.sigmoid(x)", "logistic r2 r1; mul r3 r2 r1"),
    "bounded": ("x.clamp(-1, 1)", "clamp r2 r1 -1 1"),
    "hinge": ("torch.nn.functional.softplus(x)", "softplus r2 r1"),
    "weighted": ("x * w", "mul_row r2 r1 w"),
    "biased": ("torch.exp(x + w)", "add_row r2 r1 w; exp r3 r2"),
    "unit_rows": ("x * torch.rsqrt(x.square().sum(-1, keepdim=True))", "square r2 r1; sum r3 r2; rsqrt r4 r3; mul_column r5 r1 r4"),
    "softmax": (
        "torch.softmax(x, -1)",
        "max r2 r1; sub_column r3 r1 r2; exp r4 r3; sum r5 r4; reciprocal r6 r5; mul_column r7 r4 r6",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Chip:
    """A made-up chip. `book`: the module that writes its manual."""

    name: str
    book: object
    suffix: str

    @property
    def names(self) -> dict[str, str]:
        """By what an operation does, the instruction that does it."""
        return {kind: name for name, kind in self.book.OPERATIONS.items()}  # type: ignore[attr-defined]

    @property
    def settling(self) -> str:
        return self.book.SETTLED  # type: ignore[attr-defined, no-any-return]


CHIPS = (Chip("kestrel", kestrel, ".md"), Chip("morrow", morrow, ".txt"))
SEEN = (  # held out once; the search was then changed for the kinds of what it had not found
    Chip("petrel", petrel, ".html"),
    Chip("tamarisk", tamarisk, ".md"),
)
HELD_OUT = Chip("fulmar", fulmar, ".txt")  # written after the last change of the search


@cache
def write_book(chip: Chip) -> str:
    return chip.book.write_manual()  # type: ignore[attr-defined, no-any-return]


def write_chip(chip: Chip, folder: Path, manual: str = "") -> Path:
    """Its language file with simulator and problems; `manual`: a file that its [manual] names."""
    folder.mkdir(exist_ok=True)
    shutil.copy(HERE / "machine.py", folder)
    operations = chip.book.OPERATIONS  # type: ignore[attr-defined]
    (folder / "chip.json").write_text(json.dumps({"operations": operations, "fault": chip.book.SETTLED_FAULT}))  # type: ignore[attr-defined]
    load, store = (chip.names[kind] for kind in ("load", "store"))
    (folder / "chip.toml").write_text(
        f'name = "{chip.name}"\ncomment = ";"\n'
        f'prompt = "One instruction a line. `{load} r1, x` gets x into r1, `{store} y, r1` puts r1 to y. '
        'The other instructions stand in the manual."\n\n[run]\ncommand = ["{python}", "-S", "{here}/machine.py", '
        '"{here}/chip.json", "{source}", ["-i", "{inputs=}"], ["-o", "{outputs=}"], ["-D", "{sizes=}"]]\n\n'
        '[toolchain]\nreadable = ["machine.py", "chip.json"]\n'
        + (f'\n[manual]\nfiles = ["{manual}"]\n' if manual else "")
    )
    (folder / "problems").mkdir(exist_ok=True)
    for name, (reference, _) in PROBLEMS.items():
        has_weights, is_folded = " w" in reference, reference.endswith((".sum(-1)", ".amax(-1)"))
        weights = "  - {name: w, dtype: fp32, shape: [N], data: normal}\n" if has_weights else ""
        (folder / "problems" / f"{name}.yaml").write_text(
            f"problem: {name}\ngroup: chip\ndims: {{M: 4, N: 12}}\ninputs:\n  - {{name: x, dtype: fp32, shape: [M, N], data: normal}}\n"
            f"{weights}outputs:\n  - {{name: y, dtype: fp32, shape: [{'M' if is_folded else 'M, N'}]}}\nreference: |\n"
            f"  def {name}(x{', w' if has_weights else ''}):\n      return {reference}\n"
            "shapes:\n  odd: {M: 3, N: 7}\n  long: {M: 2, N: 33}\nbench:\n  small: {M: 8, N: 16}\n  odd: {M: 9, N: 31}\n  large: {M: 16, N: 64}\n"
        )
    return folder / "chip.toml"


def list_needs(chip: Chip, problem: str) -> list[str]:
    """The instructions that a program for it has, beside those that the language's prompt tells."""
    return [chip.names[step.split()[0]] for step in PROBLEMS[problem][1].split("; ")]


def is_shown(chip: Chip, name: str, text: str) -> bool:
    """Whether a text shows how an instruction is written: its name with operands behind it."""
    operands = r"(?:rd|into|tile|r\d|a\d)\b"
    return bool(re.search(rf"(?<![\w.]){re.escape(name)} {operands}", text))


def write_program(chip: Chip, problem: str, text: str) -> str:
    """By somebody who uses an instruction only where a text shows how it is written, and settles folds only then."""
    lines = [f"{chip.names['load']} {'r1, x'}"]
    if " w" in PROBLEMS[problem][0]:
        lines.append(f"{chip.names['load']} w, w")
    last = ""
    for step in PROBLEMS[problem][1].split("; "):
        kind, last, *sources = step.split()
        name = chip.names[kind]
        lines.append(f"{name if is_shown(chip, name, text) else 'guess.' + kind} {', '.join([last, *sources])}")
        if kind in {"sum", "max"} and is_shown(chip, chip.names["settle"], text):
            lines.append(f"{chip.names['settle']} {last}")
    return "\n".join([*lines, f"{chip.names['store']} y, {last}"]) + "\n"


def measure_recall(chip: Chip, file: Path, folder: Path, choice: str = "likeliest") -> dict[int, float]:
    """By budget, the share of needed sections that are in first prompts for the problems."""
    from opsmith.agents.manual import find_manual
    from opsmith.agents.prompt import compose_prompt
    from opsmith.suites import load_task
    from opsmith.targets import get_target

    language = write_chip(chip, folder)
    recall = {}
    for tokens in BUDGETS:
        manual = find_manual(get_target(str(language)), [str(file)], tokens, choice)
        shown = []
        for problem in PROBLEMS:
            task = load_task(str(folder / "problems" / f"{problem}.yaml"), str(language))
            text = compose_prompt(task, (), get_target(str(language)), None, 0, manual=manual).messages[1].content
            shown += [is_shown(chip, name, text) for name in list_needs(chip, problem)]
        recall[tokens] = sum(shown) / len(shown)
    return recall


def main(arguments: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        for chip in (*CHIPS, *SEEN, HELD_OUT):
            file = Path(name) / f"{chip.name}{chip.suffix}"
            file.write_text(write_book(chip))
            for choice in arguments or ("likeliest", "random"):
                print(chip.name, choice, measure_recall(chip, file, Path(name) / chip.name, choice))


if __name__ == "__main__":
    main(sys.argv[1:])
