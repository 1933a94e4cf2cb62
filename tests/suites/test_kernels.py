"""The programs beside the suite `kernels`: what is there for every problem, and which mistakes the wrong ones make."""

import re
from collections import Counter
from pathlib import Path

import opsmith
from opsmith_lab.bench.attacks import LIBRARY

SUITE = Path(opsmith.__file__).parent / "suites" / "kernels"
PROGRAMS = Path(__file__).parents[1] / "fixtures" / "kernels"
MISTAKES = LIBRARY / "c" / "mistakes"
HEADER = re.compile(r"// wrong: (\w+): .+; refused at (PARSE|COMPILE|RUN|MATCH)\n")
KINDS = ("bound", "stride", "tail", "uninitialised_heap", "uninitialised_stack", "constant", "state", "overrun")
KINDS += ("stated_sizes_only", "half_accumulation", "low_precision")


def count_programs(folder: Path, suffix: str = ".c") -> Counter[str]:
    """Programs by the name of their problem."""
    return Counter(path.stem.partition("__")[0] for path in folder.glob(f"*{suffix}"))


def test_every_problem_has_one_plain_program_and_three_wrong_ones() -> None:
    problems = {path.stem for path in SUITE.glob("*.yaml")}
    wrong = count_programs(MISTAKES)
    assert len(problems) == 24
    assert count_programs(SUITE / "plain") == dict.fromkeys(problems, 1)
    assert count_programs(SUITE / "plain", ".cu") == dict.fromkeys(problems, 1)
    assert wrong.keys() == problems
    assert min(wrong.values()) >= 3


def test_right_programs_belong_to_problems() -> None:
    problems = {path.stem for path in SUITE.glob("*.yaml")}
    fast = count_programs(PROGRAMS / "fast")
    assert len(fast) >= 10
    assert all(count_programs(PROGRAMS / folder).keys() <= problems for folder in ("fast", "reordered", "threads"))


def test_a_wrong_program_says_what_is_wrong_and_where_it_is_refused() -> None:
    paths = [*MISTAKES.glob("*__*.c"), *PROGRAMS.glob("threads/*__*.c")]
    texts = {path: path.read_text("utf-8") for path in paths}
    headers = {path: HEADER.match(text) for path, text in texts.items()}
    assert [path.name for path, header in headers.items() if header is None] == []
    kinds = Counter(header[1] for header in headers.values() if header)
    assert {kind: kinds[kind] for kind in KINDS if kinds[kind] < 3} == {}


def test_every_step_task_has_a_plain_program() -> None:
    suite = SUITE.parent / "step26"
    assert {path.stem for path in suite.glob("plain/*.c")} == {path.stem for path in suite.glob("*.yaml")}
