"""A planner's answer is read strictly, within limits, and whatever it is; what joins programs reads what was split."""

import random
import time

import pytest

from opsmith.agents.joining import read_join, request_join, write_split
from opsmith.agents.planning import PlanBrief, read_plan, request_plan
from opsmith.errors import UsageError
from opsmith.models import Message
from opsmith.records import Task
from opsmith.splits import Border, PlanNode, Split
from opsmith.targets import get_target

SPLIT = Split(
    (
        PlanNode("a", ("E0",), (Border("mid", "Buffer(fp32, [D])", ("N", "2*M")),), "mid = input_data['E0'] * 2\n"),
        PlanNode("b", ("mid", "E0"), (Border("S0", "[fp32, int32]", ()),), "x = 1\nS0 = x: '#'\n", ("fn_add", "no")),
    ),
    ("S0",),
)
TEXT = write_split(SPLIT)


def test_a_split_is_read_as_it_was_written_among_thoughts_prose_and_fences() -> None:
    assert read_plan(TEXT) == SPLIT
    assert (
        read_plan(f"<think>```yaml\nnodes: []\n```</think>First:\n```python\nx = 1\n```\n```yaml\n{TEXT}```\nDone.")
        == SPLIT
    )


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("name: b", "name: a", "two of one name"),
        ("name: b", "name: 1b", "expected an identifier"),
        ("takes: [mid, ", "gets: [mid, ", "no mapping of `name`"),
        ("dtype: ", "kind: ", "no mapping of `name`, `dtype`"),
        ("outputs:", "reason: because\noutputs:", "unknown key 'reason'"),
        ('outputs:\n- "S0"', "outputs: S0", "expected a list of 1 to 8"),
        ("x = 1", "x = 1" + "0" * 5000, "at most 4000 characters"),
    ],
)
def test_what_is_wrong_with_a_split_is_said(old: str, new: str, problem: str) -> None:
    assert old in TEXT
    answer = read_plan(TEXT.replace(old, new, 1))
    assert isinstance(answer, str)
    assert problem in answer


def test_no_answer_raises_or_takes_long() -> None:
    rng, start = random.Random(0), time.monotonic()
    hostile = [
        "",
        "nodes: &a [*a]\noutputs: *a",
        "nodes:\n" + "- [" * 5000,
        "nodes: {}\noutputs: {}",
        "{" * 10_000,
        "a" * 10**6,
    ]
    hostile += ["nodes: [null]\noutputs: [null]", "nodes:\n- {name: a, takes: b, gives: c, code: d}\noutputs: [e]"]
    for _ in range(300):
        place = rng.randrange(len(TEXT))
        hostile.append(TEXT[:place] + rng.choice("[]{}:\n\t-|>&*!'\"\x00\ud800") + TEXT[place + rng.randrange(3) :])
    assert {type(read_plan(text)) for text in hostile} <= {str, Split}
    assert time.monotonic() - start < 60


def test_the_join_model_is_asked_for_what_was_split() -> None:
    task = Task("t", "step", "inputs: []\nfns: []\noutputs: []\n")
    programs = {"a": "return E0\n", "b": "E1 = x\nreturn E1\n"}
    prompt = read_join(request_join(task, SPLIT, programs))
    assert prompt is not None
    assert (prompt.split, dict(prompt.programs)) == (SPLIT, programs)
    assert read_join([Message("user", "task: {}")]) is None


def test_a_language_without_plans_has_no_planner() -> None:
    target = get_target("c")
    with pytest.raises(UsageError, match="'c' cannot split its tasks; try --plan none"):
        request_plan(target, PlanBrief(Task("t", "c", "x"), "unsolved"))


@pytest.mark.parametrize(
    "code",
    [
        "import os\nS = 1",
        "raise ValueError(input_data)",
        "S = open('/etc/passwd').read()",
        "S = torch.os.listdir('/')",
        "S = input_data.__class__.__base__",
        "S = '{0.__class__}'.format(input_data)",
        "S = torch.from_file('x')",
        "try:\n  S = 1\nexcept Exception as error:\n  S = error",
        "S = [getattr(input_data, x) for x in 'ab']",
        "S = torch.load('x')",
    ],
)
def test_code_that_reads_more_than_tensors_is_no_split(code):
    block = "".join(f"    {line}\n" for line in code.splitlines())
    answer = (
        "nodes:\n- name: a\n  takes: [Q]\n  gives: [{name: S, dtype: fp32, dims: [N]}]\n  code: |\n"
        f"{block}outputs: [S]\n"
    )
    assert "expected plain statements on tensors" in str(read_plan(answer))
