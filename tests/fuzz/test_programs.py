"""Any program ends in a verdict that is charged to the candidate, whatever was done to a right one before."""

from __future__ import annotations

import ast
import io
import tokenize

from hypothesis import given
from hypothesis import strategies as st

from fuzz.examples import BITS, TASKS, fuzz, spoiled
from opsmith.judging.verifier import verify, verify_many
from opsmith.records import Outcome, Stage, Task
from opsmith.targets.step import spec_of
from opsmith.targets.step.language.canonical import canonical_text
from opsmith.targets.step.language.check import check_program
from opsmith.targets.step.language.ops import KEYWORDS

SMALL = [task for task in TASKS if task.id in ("powers_0", "pairs_0", "shares_0", "expert_2")]
WORDS = [f"step.{name}" for name in KEYWORDS] + [
    "E0",
    "E1",
    "E2",
    "D",
    "N",
    "M_value",
    "E_value",
    "fn_add",
    "[0]",
    "0",
    "1",
]
WORDS += [
    "2",
    "3",
    "-1",
    "16",
    "D/2",
    "M*N",
    "for",
    "in",
    "range(3)",
    "zip",
    "list",
    "(",
    ")",
    "[",
    "]",
    ",",
    "=",
    ".apply",
]
WORDS += ["return", "step.Copy().apply(E0)", "\n", "lambda: 0", "E0.data", "*", "**", ":=", "if", "await", "{}"]
TASK = st.sampled_from(SMALL)


def is_judged(task: Task, source: str) -> None:
    verdict = verify(task, source)
    assert verdict.outcome is not Outcome.UNJUDGED, verdict.message
    assert verdict.passed or verdict.errors
    assert all(error.given and error.expected for error in verdict.errors)
    assert isinstance(canonical_text(source), str)


@st.composite
def with_other_tokens(draw: st.DrawFn) -> tuple[Task, str]:
    """A right program with some tokens replaced, doubled or taken away."""
    task = draw(TASK)
    tokens = [
        token for token in tokenize.generate_tokens(io.StringIO(task.impl or "").readline) if token.string.strip()
    ]
    rows = (task.impl or "").splitlines(keepends=True)
    for token in draw(st.lists(st.sampled_from(tokens), min_size=1, max_size=3)):
        (row, start), (_, end) = token.start, token.end
        word = draw(st.sampled_from([*WORDS, "", token.string * 2]))
        rows[row - 1] = rows[row - 1][:start] + word + rows[row - 1][end:]
    return task, "".join(rows)


class _Exchange(ast.NodeTransformer):
    """Puts other expressions at some places of a syntax tree."""

    def __init__(self, draw: st.DrawFn, tree: ast.Module) -> None:
        self.draw = draw
        expressions = [node for node in ast.walk(tree) if isinstance(node, ast.expr)]
        self.chosen = draw(st.lists(st.sampled_from(expressions), min_size=1, max_size=3))
        self.others = [ast.unparse(node) for node in expressions if isinstance(getattr(node, "ctx", None), ast.Load)]

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if any(node is chosen for chosen in self.chosen):
            return self.exchanged(node)
        return super().generic_visit(node)

    def exchanged(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Constant):
            return ast.Constant(self.draw(st.integers(-2, 17)))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "step":
            return ast.Attribute(node.value, self.draw(st.sampled_from(sorted(KEYWORDS))), node.ctx)
        if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
            return ast.Tuple(self.draw(st.permutations(node.elts)), node.ctx)
        if isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return ast.parse(self.draw(st.sampled_from(self.others)), mode="eval").body
        return node


@st.composite
def with_other_expressions(draw: st.DrawFn) -> tuple[Task, str]:
    """A right program with some of its expressions exchanged for others of it, and perhaps two lines exchanged."""
    task = draw(TASK)
    tree = ast.parse(task.impl or "")
    tree = ast.fix_missing_locations(_Exchange(draw, tree).visit(tree))
    if draw(st.booleans()):
        first, second = (draw(st.integers(0, len(tree.body) - 2)) for _ in range(2))
        tree.body[first], tree.body[second] = tree.body[second], tree.body[first]
    return task, ast.unparse(tree)


ARGUMENTS = {  # of primitives; a dim that is whole at some sizes only is an entry of the hostile corpus
    "Promote": st.integers(0, 3).map("b={}".format),
    "Bufferize": st.integers(1, 2).map("a={}".format),
    "Flatten": st.sampled_from(["L=[1]", "L=[2]", "L=[1, 2]"]),
    "Repeat": st.sampled_from(["D", "N", "2", "M*N", "D/2", "E_value", "M_value - 1", "1"]).map("n={}".format),
    "Reshape": st.tuples(st.sampled_from("12MD"), st.integers(0, 2)).map("S={0[0]}, L=[{0[1]}]".format),
    "Partition": st.just("N=2"),
}
PAIRS = ("Zip", "RepeatRef", "Partition")


@st.composite
def with_lines_before(draw: st.DrawFn) -> tuple[Task, str]:
    """A right program behind well typed lines that work on copies of its inputs."""
    task = draw(TASK)
    spec = spec_of(task.text)
    text = "".join(f"{entry.name}, {entry.name}_ = step.Copy().apply({entry.name})\n" for entry in spec.inputs)
    streams = [f"{entry.name}_" for entry in spec.inputs]
    for number in range(draw(st.integers(1, 12))):
        line, used, made = draw(_lines(number, streams, [fn.func_name for fn in spec.fns]))
        found = check_program(spec, f"{text}{line}\nreturn {made[0]}").errors
        if all(error.kind == "OUT" for error in found):
            text += f"{line}\n"
            streams = [*(name for name in streams if name not in used), *made]
    return task, text + (task.impl or "")


@st.composite
def _lines(draw: st.DrawFn, number: int, streams: list[str], fns: list[str]) -> tuple[str, list[str], list[str]]:
    """One application: its line, the streams that it uses, and those that it makes."""
    name = draw(st.sampled_from([op for op in KEYWORDS if op != "Merge"]))
    arguments = [draw(ARGUMENTS[name])] if name in ARGUMENTS else []
    if "fn" in KEYWORDS[name]:
        arguments = [f"fn={draw(st.sampled_from(fns))}", *(f"b={draw(st.integers(1, 2))}" for _ in KEYWORDS[name][1:])]
    used = draw(st.permutations(streams))[: 2 if name in PAIRS else draw(st.integers(1, 2)) if name == "Map" else 1]
    made = [f"X{number}_{at}" for at in range(2 if name in ("Copy", "Partition") else 1)]
    operand = used[0] if len(used) == 1 else f"({', '.join(used)})"
    return f"{', '.join(made)} = step.{name}({', '.join(arguments)}).apply({operand})", used, made


@fuzz(40)
@given(with_lines_before())
def test_a_right_program_behind_other_lines_passes_or_is_refused_for_them(pair: tuple[Task, str]) -> None:
    task, source = pair
    verdict = verify(task, source)
    assert verdict.passed or (verdict.outcome, verdict.stage) == (Outcome.REFUSED, Stage.RUN), verdict.message


@fuzz(100)
@given(with_other_tokens())
def test_a_program_with_other_tokens_is_judged(pair: tuple[Task, str]) -> None:
    is_judged(*pair)


@fuzz(150)
@given(with_other_expressions())
def test_a_program_with_other_expressions_is_judged(pair: tuple[Task, str]) -> None:
    is_judged(*pair)


@fuzz(80)
@given(TASK, spoiled([task.impl or "" for task in SMALL]))
def test_a_spoiled_program_is_judged(task: Task, source: str) -> None:
    is_judged(task, source)


@fuzz(150)
@given(TASK, st.text() | st.lists(st.sampled_from([*WORDS, *BITS]), max_size=25).map(" ".join))
def test_any_text_is_judged_as_a_program(task: Task, source: str) -> None:
    is_judged(task, source)


@fuzz(12)
@given(with_other_expressions())
def test_a_batch_says_of_each_program_what_is_said_of_it_alone(pair: tuple[Task, str]) -> None:
    task, source = pair
    sources = [task.impl or "", source, f"{source}\n# again\n"]
    assert verify_many(task, sources) == [verify(task, text) for text in sources]
