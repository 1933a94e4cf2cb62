"""What prompts quote of a manual: never over the budget, most of it used, the passage that matters first."""

import random

import pytest

from opsmith.agents.manual import choose_passages
from opsmith.models.tokens import estimate_tokens


def generate_manual(seed: int, sections: int = 300) -> dict[str, str]:
    """Sixty pages about opcodes that no one has, with what a task needs in one section only."""
    draw = random.Random(seed)
    roots = ["vadd", "rmov", "scas", "xrot"]
    opcodes = [f"{draw.choice(roots)}{number}.w" for number in range(sections)]
    passages = {
        f"5.{number} `{opcode}`": "\n".join(
            f"{opcode} takes {draw.choice(['lanes', 'words', 'ports'])} and leaves {other}."
            for other in draw.sample(opcodes, draw.randint(4, 12))
        )
        for number, opcode in enumerate(opcodes)
    }
    place = draw.randrange(sections)
    rows = list(passages.items())
    rows.insert(place, ("9 Waking the unit", "Before an exp the unit is woken with zwake.u, or the result is zero."))
    return dict(rows)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tokens", [1000, 4000])
def test_the_budget_holds_is_used_and_has_the_section_that_matters(seed: int, tokens: int) -> None:
    passages = generate_manual(seed)
    quotations = choose_passages(passages, "y = torch.exp(x)", tokens)
    block = "".join(quotations)
    used = estimate_tokens(block + "    " * block.count("\n"))
    assert 0.9 * tokens - 50 <= used <= tokens
    assert any("zwake.u" in quotation for quotation in quotations)
    order = list(passages)
    places = [order.index(quotation[1 : quotation.index("]\n")]) for quotation in quotations]
    assert places == sorted(places), "in the order of the manual"
    assert any("zwake" in quotation for quotation in choose_passages(passages, "line 3: zwake.u: no such", tokens))


def test_an_opcode_with_a_dot_is_one_word() -> None:
    passages = {"loads": "ld u " * 40, "unaligned": "ld.u reads anywhere"}
    assert choose_passages(passages, "ld.u", 60) == ["[unaligned]\nld.u reads anywhere\n\n"]
