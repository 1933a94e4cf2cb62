"""The manual of a fourth chip that does not exist, the Tamarisk S4: the pages of a team's wiki, in Markdown.

Held out until formulas in sentences were looked for. Its pages are notes, questions and answers of people, and a
reference by letters, whose entries say in few words of their own what an instruction is for; what several have in
common (forms, narrow operands, joining) is said once, elsewhere.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

# name, operands, in words, what people noted beside it
ENTRIES = [
    ("BcMinusC", "rd, ra, rc", "Form C of `EwMinus`: `rc` is one cell wide and is taken from all cells of its row.", "What centring needs."),
    ("BcMinusR", "rd, ra, rv", "Form R of `EwMinus`.", "Rarely needed."),
    ("BcPlusC", "rd, ra, rc", "Form C of `EwPlus`.", ""),
    ("BcPlusR", "rd, ra, rv", "Form R of `EwPlus`: `rv` is one row high and goes on top of every row.", "Biases of linear layers."),
    ("BcTimesC", "rd, ra, rc", "Form C of `EwTimes`: every row is scaled by its own number.", "The last line of most normalisations."),
    ("BcTimesR", "rd, ra, rv", "Form R of `EwTimes`: one gain for each cell position, the same in all rows.", "Affine part of a layer norm."),
    ("Bring", "rd, name", "A buffer of the launch comes into a register.", ""),
    ("EwBigger", "rd, ra, rb", "Of two cells at the same place the bigger one stays.", "A rectifier is this against a register of zeros."),
    ("EwFence", "rd, ra, lo, hi", "Cells past either edge are pinned to that edge.", "Hard tanh, ReLU6 and gradients that explode."),
    ("EwFlag", "rd, ra, rb", "1.0 where `ra` is ahead of `rb`, 0.0 elsewhere.", ""),
    ("EwMinus", "rd, ra, rb", "The second operand is taken from the first.", ""),
    ("EwPick", "rd, rf, ra, rb", "By a flag, a cell of `ra` or of `rb`.", "Masks of attention."),
    ("EwPlus", "rd, ra, rb", "Cells at the same place are put together by addition.", "Residual branches."),
    ("EwSelf", "rd, ra", "Second power of each cell.", "One read port instead of the two that `EwTimes` occupies."),
    ("EwSign", "rd, ra", "Turns plus into minus and back.", ""),
    ("EwSize", "rd, ra", "Cells without their sign.", ""),
    ("EwSmaller", "rd, ra, rb", "Of two cells at the same place the smaller one stays.", ""),
    ("EwTimes", "rd, ra, rb", "Cells at the same place are multiplied.", "Gates, dropout, attention scores."),
    ("FnBell", "rd, ra", "The integral of the bell curve, up to scale.", "Exact GELU."),
    ("FnEPow", "rd, ra", "e^x of each cell.", "Wants arguments below 88, or the row becomes infinite."),
    ("FnLn", "rd, ra", "The inverse of `FnEPow`.", ""),
    ("FnNormFac", "rd, ra", "x^(-1/2), the factor by which norms are divided out.", "Newton's method, two steps."),
    ("FnOver", "rd, ra", "1/x.", "There is no division; this and `EwTimes` are how one divides."),
    ("FnRoot", "rd, ra", "x^(1/2).", ""),
    ("FnSCurve", "rd, ra", "The S-shaped curve from 0 to 1 with the value 1/2 at 0, which gates of recurrent networks have.", "Also called logistic."),
    ("FnSoftKnee", "rd, ra", "ln(1 + e^x), with a branch for large x, so that nothing overflows.", "A rectifier whose corner is rounded off."),
    ("FnTwoSided", "rd, ra", "The S-shaped curve from -1 to 1.", "tanh."),
    ("FnWave", "rd, ra", "Sine, argument in revolutions.", "Rotary embeddings."),
    ("Hint", "name", "A buffer is on its way early.", ""),
    ("Join", "rd", "The program goes on when the row engine has delivered `rd`.", "Read the page on the row engine first."),
    ("Keep", "name, ra", "A register goes out to a buffer.", ""),
    ("Order", "", "Everything that was kept is visible before whatever comes next.", ""),
    ("RowAcc", "rd, ra", "The cells of each row are added together; what is left is one cell wide.", "Delivered by the row engine."),
    ("RowAccAll", "rd, ra", "Like `RowAcc`, but every intermediate total stays: cell k has what cells 0 to k add up to.", "Positions in a packed batch."),
    ("RowAny", "rd, ra", "1.0 for a row with a cell other than zero.", "Delivered by the row engine."),
    ("RowBack", "rd, ra", "The same row read from its far end.", "Bidirectional models."),
    ("RowBest", "rd, ra", "At which position `RowTop` found it, counted from 0.", "Greedy decoding. Delivered by the row engine."),
    ("RowGrab", "rd, ra, ri", "Cells by position, which another register gives.", "Embeddings."),
    ("RowLow", "rd, ra", "The least cell of each row.", "Delivered by the row engine."),
    ("RowPush", "rd, ra, n", "Cells move n positions up; zeros come in.", "Causal convolutions."),
    ("RowSpin", "rd, ra, n", "Cells move n positions up; what leaves at the top comes in at the bottom.", "A ring."),
    ("RowTop", "rd, ra", "The greatest cell of each row.", "Subtract it before you exponentiate. Delivered by the row engine."),
    ("RowTopAll", "rd, ra", "Like `RowTop`, but every intermediate winner stays.", ""),
    ("RowZip", "rd, ra, rb", "Cells of both registers in turn.", ""),
    ("TurnOver", "rd, ra", "Rows become columns, of a square.", ""),
]  # fmt: skip
OPERATIONS = {
    "EwPlus": "add", "EwMinus": "sub", "EwTimes": "mul", "EwSelf": "square", "EwFence": "clamp", "FnEPow": "exp",
    "FnSCurve": "logistic", "FnSoftKnee": "softplus", "FnOver": "reciprocal", "FnNormFac": "rsqrt", "RowAcc": "sum",
    "RowTop": "max", "RowAccAll": "scan", "RowBack": "flip", "RowSpin": "roll", "BcPlusR": "add_row",
    "BcTimesR": "mul_row", "BcMinusC": "sub_column", "BcTimesC": "mul_column", "Join": "settle", "Bring": "load", "Keep": "store",
}  # fmt: skip
SETTLED_FAULT = "E0431: {register} is still with the row engine"
SETTLED = "The row engine"
NAMES = ("Ewa", "Tomasz", "Priya", "Lucia", "Jonas", "Mei", "Ola", "Farid")
THINGS = (
    "the scheduler", "the row engine", "the loader", "the nightly build", "board 3", "the second revision", "the trace viewer",
    "the power rail", "the register file", "the host library", "the emulator", "the old linker", "the debug probe", "the fan",
)  # fmt: skip
SAID = (
    "{who} measured it again after the move to the new lab: {n} cycles with {thing} warm, {m} after a cold start.",
    "On the first boards {thing} was fused off, so anything older than batch {n} cannot be used to reproduce this.",
    "If it hangs, look at {thing} before anything else; {who} lost {n} days on a cable.",
    "We had a long argument about this in week {n}, and {who} was right: {thing} does not see it at all.",
    "The number {n} in the emulator's log is a line of its own source, not a cycle; {who} has asked for a better name.",
    "Please do not rely on {thing} here. It is on the list for the next tape-out, item {n}.",
    "{who} keeps a script that plots this over time; the step in March is {thing}, which got {m} wait states.",
    "There is a spreadsheet with {n} rows of temperatures, all of them fine as long as {thing} is idle.",
    "With more than {m} programs resident {thing} starts to evict, which looks like a slow instruction and is none.",
    "Customers ask about {thing} every month; the short answer is no, the long one is in ticket {n}.",
    "The picture that used to be here showed {thing} as of revision {m}; {who} will draw a new one.",
    "It costs {n} microjoules on the bench supply, of which {thing} takes about a third.",
    "In the review {who} noted that {thing} ought to be mentioned first, but nobody has moved the paragraph yet.",
    "Since firmware {m}.{n} this is checked, and the message names {thing}.",
    "A second opinion from {who}: leave it, unless {thing} shows up among the top {m} of the profile.",
)
PAGES = (
    "Welcome", "Who sits where", "Getting a board", "Flashing firmware", "Booking the bench", "Serial console", "Power budget",
    "Heat", "Boot messages", "Host library", "Buffers and launches", "Naming of revisions", "Traces", "Reading a profile",
    "Known bad boards", "Emulator", "Emulator against silicon", "Nightly build", "Release checklist", "Support rota",
)  # fmt: skip
QUESTIONS = (
    ("Why is my loop not unrolled?", "Because nothing here unrolls. Write it out."),
    ("Can I have integers?", "Not on this revision."),
    ("How many registers are there?", "Thirty-two, and each holds a whole array of rows."),
    ("Is there a debugger?", "The probe and the serial console. Bring tea."),
    ("Does the emulator count cycles?", "It does, and they are right to within a few per cent."),
    ("Why are there two forms of some instructions?", "See *Narrow operands*: C is a column, R is a row."),
    ("My program reads garbage after a row instruction.", "It reads too early. See *The row engine*."),
    ("Can two programs share a buffer?", "One after the other."),
)
ERRORS = (
    ("E0102", "a name that no launch gave", "check the spelling of the buffer"),
    ("E0207", "operands differ in shape", "one of them is narrow: forms C and R of the instruction"),
    ("E0318", "a register that nobody wrote", "an earlier line has another register"),
    ("E0431", "a register that is still with the row engine", "*The row engine*"),
    ("E0555", "more positions than cells", "the literal"),
)


def write_manual() -> str:
    """The whole wiki, the same text on each call."""
    return "\n\n".join(_list_parts(random.Random(23))) + "\n"


def _list_parts(drawn: random.Random) -> Iterator[str]:
    yield "# Tamarisk S4 wiki"
    for page in PAGES:
        yield f"## {page}"
        yield from (_talk(drawn, 7) for _ in range(2))
    yield "## Cheat sheet"
    yield (
        "| prefix | stands for |\n|---|---|\n| Ew | element-wise, all operands alike |\n| Bc | with a narrow operand |\n"
        "| Fn | functions of one operand |\n| Row | along a row |"
    )
    yield "## Narrow operands"
    yield (
        "An operand that is one cell wide (form C, column) or one row high (form R) is spread over the other one while it "
        "is read; no copy is made. Only the Bc instructions do that, the Ew ones raise E0207."
    )
    yield _talk(drawn, 4)
    yield "## The row engine"
    yield (
        "Results of the Row instructions that leave one cell arrive late. Nothing stops you from reading the register "
        "before; you get E0431 at the first use, also when that is a `Keep`. Put\n\n```\nJoin r4\n```\n\nbetween the row "
        "instruction that wrote r4 and whoever reads it. Instructions that leave whole rows are not affected."
    )
    yield _talk(drawn, 5)
    yield "## Reference by letters"
    for name, operands, words, noted in ENTRIES:
        yield f"### {name}"
        yield f"{words} {noted}".strip()
        example = operands.replace("rd", "r4").replace("ra", "r2").replace("rb", "r3").replace("lo, hi", "0, 6")
        yield f"```\n{name} {operands}\n{f'{name} {example}'.strip()}\n```"
        yield _talk(drawn, drawn.randrange(3, 7))
    yield "## Questions"
    for question, answer in QUESTIONS:
        yield f"**{question}** {answer} {_talk(drawn, 3)}"
    yield "## Messages"
    for name, cause, look in ERRORS:
        yield f"### {name}\n\nRaised for {cause}. Look at {look}. {_talk(drawn, 4)}"


def _talk(drawn: random.Random, count: int) -> str:
    return " ".join(
        said.format(
            who=drawn.choice(NAMES), thing=drawn.choice(THINGS), n=drawn.randrange(12, 90), m=drawn.randrange(2, 12)
        )
        for said in drawn.sample(SAID, count)
    )
