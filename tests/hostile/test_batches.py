"""In a batch, a wrong program cannot borrow the verdict of a right one whose canonical text it imitates."""

import pytest

from hostile.corpus import TASK, task_of
from opsmith.records import Outcome
from opsmith.verification.pool import Pool
from opsmith.verification.verifier import verify_many

RIGHT = "a = step.Repeat(n=D).apply(E0)\nb = step.Scan(fn=fn_mul, b=1).apply(a)\nreturn b"
IMITATIONS = {
    "a free name that looks like a renamed local": RIGHT.replace("return b", "return _1"),
    "a free operand that looks like a renamed local": RIGHT.replace("apply(a)", "apply(_0)"),
    "a number for a docstring": f"7\n{RIGHT}",
    "an ellipsis for a docstring": f"...\n{RIGHT}",
    "an unbound loop variable": RIGHT.replace("return b", "c = [d for d in [b]]\nreturn d"),
    "an input that is bound first": f"E0 = [E0]\n{RIGHT}",
    "text beyond the limit": f"{RIGHT}  # {'x' * 70_000}",
}


BROKEN = {  # that still borrow the verdict
    "a number for a docstring": "language/canonical.py, _is_docstring(): every constant counts as one, not only a text",
    "an ellipsis for a docstring": "as above",
}


def _marks(name: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.xfail(strict=True, reason=BROKEN[name])] if name in BROKEN else []


@pytest.mark.parametrize("name", [pytest.param(name, marks=_marks(name)) for name in IMITATIONS])
def test_an_imitation_is_judged_by_itself(warm: Pool, name: str) -> None:
    task = task_of(TASK)
    assert warm.verify(task, IMITATIONS[name]).outcome is Outcome.REFUSED
    right, imitation = verify_many(task, [RIGHT, IMITATIONS[name]], warm.verify_all)
    assert right.passed
    assert imitation.outcome is Outcome.REFUSED
