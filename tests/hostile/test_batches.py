"""In a batch, no program changes the verdict on its neighbours, and none can borrow theirs."""

import pytest

from hostile.corpus import TASK, Attack, attacks, task_of
from opsmith.judging.pool import Pool
from opsmith.records import Level, Outcome, Stage
from opsmith.targets import get_target

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


WRONG = {  # well typed
    "powers_0": f"{RIGHT}\n".replace(
        "apply(E0)", "apply(step.Accum(fn=fn_mul, b=1).apply(step.Repeat(n=2).apply(E0)))"
    ),
    "shares_0": "return step.Map(fn=fn_exp).apply(E0)",
}
NOT_HERE = ("five thousand Scans", "a long check at every size", "four hundred megabytes at the large shape")


@pytest.mark.parametrize("name", IMITATIONS)
def test_an_imitation_is_judged_by_itself(warm: Pool, name: str) -> None:
    for sources in ([RIGHT, IMITATIONS[name]], [IMITATIONS[name], RIGHT]):
        verdicts = warm.verify_all(task_of(TASK), sources)
        passed = {source: verdict.passed for source, verdict in zip(sources, verdicts, strict=True)}
        assert passed == {RIGHT: True, IMITATIONS[name]: False}


@pytest.mark.parametrize("name", IMITATIONS)
def test_an_imitation_has_a_canonical_text_of_its_own(name: str) -> None:
    target = get_target("step")
    assert target.canonical_form(IMITATIONS[name]) != target.canonical_form(RIGHT)


NEIGHBOURS = [attack for attack in attacks("programs.yaml", "program") if set(attack.stages) & {Stage.RUN, Stage.MATCH}]


@pytest.mark.parametrize(
    "attack", [attack for attack in NEIGHBOURS if attack.name not in NOT_HERE], ids=lambda attack: attack.name
)
def test_a_hostile_neighbour_changes_no_verdict(warm: Pool, attack: Attack) -> None:
    task = task_of(attack.task)
    right, wrong = task.impl or "", WRONG.get(attack.task, attack.text)
    verdicts = warm.verify_all(task, [right, attack.text, wrong], Level.FULL)
    assert verdicts[0].passed
    assert not verdicts[1].passed
    assert verdicts[2].outcome is Outcome.REFUSED
