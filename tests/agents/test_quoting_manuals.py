"""What prompts quote of a manual: never over the budget, most of it used, the passage that matters first."""

import random

import pytest

from opsmith.agents.manual import CHOICES, Manual, Passages, Quotation, join_quotations
from opsmith.agents.prompt import write_quotations
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
    manual = Manual(Passages(passages), tokens)
    for query in ("y = torch.exp(x)", "RUN line 3: zwake.u: no such"):
        quotations = manual.choose_passages(query)
        assert 0.9 * tokens <= estimate_tokens(write_quotations(join_quotations(quotations))) <= tokens
        assert any("zwake.u" in quotation.text and quotation.score > 0 for quotation in quotations)
        places = [list(passages).index(quotation.title.removesuffix(" (its beginning)")) for quotation in quotations]
        assert places == sorted(places), "in the order of the manual"


def test_an_opcode_with_a_dot_is_one_word() -> None:
    ranked = Passages({"loads": "ld u " * 40, "unaligned": "ld.u reads anywhere"}).rank("ld.u")
    assert ranked[0].title == "unaligned"
    assert ranked[0].words[0] == "ld_u"


@pytest.mark.parametrize("tokens", [100, 1000, 3000])
def test_a_manual_of_long_prose_fills_the_budget_and_of_one_huge_table_nothing(tokens: int) -> None:
    prose = Manual(Passages({"a": "words of no end. " * 2000, "b": "more, and longer. " * 3000}), tokens)
    assert 0.9 * tokens <= estimate_tokens(write_quotations(join_quotations(prose.choose_passages("words")))) <= tokens
    table = Manual(Passages({"a": "\n".join(f"| op{i} | words |" for i in range(2000))}), tokens)
    assert table.choose_passages("words") == []


def test_controls_quote_nothing_or_as_much_by_chance_or_all_that_fits() -> None:
    passages = Passages(generate_manual(1))
    by_choice = {choice: Manual(passages, 1000, choice) for choice in CHOICES}
    sizes = {
        choice: sum(each.size for each in manual.choose_passages("torch.exp(x)"))
        for choice, manual in by_choice.items()
    }
    assert sizes["none"] == 0
    assert abs(sizes["random"] - sizes["likeliest"]) < 0.1 * sizes["likeliest"]
    assert by_choice["all"].choose_passages("") == [Quotation(q.title, q.text) for q in passages.quotations]
    assert sum(quotation.size for quotation in by_choice["all"].choose_passages("", 2000)) <= 8000
    drawn = [
        [quotation.title for quotation in Manual(passages, 1000, "random", seed).choose_passages("x")]
        for seed in (0, 0, 1)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_findings_bring_their_sections_first_and_a_turn_repeats_none() -> None:
    manual = Manual(Passages(generate_manual(2)), 1000)
    shown = join_quotations(manual.choose_passages("torch.flip(x)"))
    assert "zwake" not in shown
    quoted = manual.quote_findings("RUN: trap: zwake.u was not called", shown)
    assert "zwake.u" in quoted
    assert estimate_tokens(write_quotations(quoted)) <= 500
    assert manual.quote_findings("RUN: trap: zwake.u was not called", shown + quoted).count("zwake") == 0
    later = Manual(manual.passages, 1000, findings="trap: zwake.u was not called").choose_passages("torch.flip(x)")
    assert any("zwake" in quotation.text for quotation in later)


@pytest.mark.parametrize(
    ("call", "section"),
    [
        ("x.flip(-1)", "| `q7 rd, ra` | rd[i] = ra[n-1-i] |"),  # a formula in place of words
        ("x.cumsum(-1)", "| `q7 rd, ra` | rd[i] = SUM(k<=i) ra[k] |"),
        ("torch.rsqrt(x)", "`vfrsqrt7.v vd, vs` takes two cycles."),  # a part of an opcode
        ("x @ w", "MatMul takes two tiles."),  # and of a name in humps
        (
            "torch.softmax(x, -1)",
            "Taken away from each row is its own number, of a column: a difference.",
        ),  # a step of it
        ("x.clamp(-1, 1)", "q9 takes a number."),  # by the glossary's line
        ("x.flip(-1)", "The ring takes a number."),  # by a number that the glossary has
    ],
)
def test_what_a_call_needs_is_found_where_words_alone_fail(call: str, section: str) -> None:
    others = {
        f"5.{n} q{n}0{n}": f"q{n}0{n} takes words, lanes and ports {'of the row ' * (n % 4)}." for n in range(200)
    }
    glossary = {
        "1 Glossary": "- q9: saturates\n- PAC: power, see 5.3\n- RNG: moves in reverse order, see 7.2\n- q55: none"
    }
    manual = Manual(Passages(glossary | others | {"7.2 Other things": section}), 300)
    shown = [quotation.text for quotation in manual.choose_passages(f"reference: |\n  return {call}\n")]
    assert section in shown
