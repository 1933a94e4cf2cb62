"""The checker: what must be refused, where and in which words, and what must be accepted (reference sections 3, 5, 11)."""

import pytest
from clocks import lasts_at_most
from targets.step.programs import spec

from opsmith.records import Stage
from opsmith.targets.step.language.check import check_program

ROUTED = spec("fp32 [M]; Multihot(fp32, E) [M]; fp32 [N, M]; Multihot(fp32, E) [N]", "fp32 [M]")
PLAIN = spec("fp32 [M, N]; fp32 [M, N]; Buffer(fp32, [D]) [M, N]; fp32 [N]", "fp32 [M, N]")
TUPLE = spec("fp32 [M]; Buffer(fp32, [D]) [M]", "fp32 [M]")


def report(program, task=PLAIN):
    return check_program(task, program)


LANG = [
    ("E1 = E0.data[0] * 2\nreturn E1", 1, "attribute `data`"),
    ("return step.Zip().apply(E0, E1)", 1, "one tuple"),
    ("import os\nreturn E0", 1, "import"),
    ("x = lambda a: a\nreturn E0", 1, "lambda"),
    ("def f(x):\n    return x\nreturn E0", 1, "function definition"),
    ("while E0:\n    x = E0\nreturn E0", 1, "while"),
    ("x = E0 if E1 else E1\nreturn x", 1, "conditional"),
    ("x = torch.sum(E0)\nreturn x", 1, "a call of .sum"),
    ("x = print(E0)\nreturn x", 1, "a call of print"),
    ("x = E0.shape\nreturn x", 1, "attribute `shape`"),
    ("x = step.Map\nreturn x", 1, "attribute `Map`"),
    ("f = step.Copy().apply\nreturn E0", 1, "attribute `apply`"),
    ("x = step.Map(fn_sq).apply(E0)\nreturn x", 1, "positional"),
    ("x = step.Map(f=fn_sq).apply(E0)\nreturn x", 1, "keywords f"),
    ("x = step.Map(fn=fn_sq, b=1).apply(E0)\nreturn x", 1, "keywords fn, b"),
    ("x = step.Mapp(fn=fn_sq).apply(E0)\nreturn x", 1, "primitive Mapp"),
    ("x = [E0, E1][0:1]\nreturn x", 1, "a slice"),
    ("E5 = step.Map(fn=fn_pair).apply(E0)\nreturn E5[0]", 2, "a subscript of stream E5"),
    ("x += 1\nreturn E0", 1, "augmented"),
    ("x: int = 1\nreturn E0", 1, "annotation"),
    ("a = b = E0\nreturn a", 1, "several targets"),
    ("(x := E0)\nreturn E0", 1, "dropped"),
    ("x = [i for i in range(2) if i]\nreturn E0", 1, "if"),
    ("x = {1: 2}\nreturn E0", 1, "dict"),
    ("x = 'text'\nreturn E0", 1, "'text'"),
    ("x = 1.5\nreturn E0", 1, "1.5"),
    ("a, *b = [E0, E1]\nreturn a", 1, "starred"),
    ("x = step.Copy().apply(*[E0])\nreturn E0", 1, "arguments"),
    ("x = 2 ** 3\nreturn E0", 1, "Pow"),
    ("x = E0 * 2\nreturn x", 1, "stream E0"),
    ("x = M + 1\nreturn E0", 1, "M_value is its number"),
    ("step = 1\nreturn E0", 1, "the name step"),
    ("for i in E0:\n    x = i\nreturn E0", 1, "iteration over stream E0"),
    ("x = undefined\nreturn E0", 1, "undefined, which is not defined"),
    ("x = input_data['E0']\nreturn E0", 1, "input_data"),
    ("x = ctx\nreturn E0", 1, "ctx"),
    ("return E0\nx = 1", 2, "code after return"),
    ("x = E0", 1, "no return"),
    ("", 1, "no return"),
    ("for i in range(2):\n    return E0\nreturn E0", 2, "return inside a loop"),
    ("if E0:\n    return E0\nreturn E0", 1, "if"),
    ("return", 1, "nothing"),
    ("x = (1\nreturn x", 1, "was never closed"),
    ("x = 1\x00\nreturn x", None, "null bytes"),
    ("(" * 500 + "E0" + ")" * 500, 1, "nested parentheses"),
    ("x = -" * 1 + "-" * 3000 + "1\nreturn E0", None, "nest"),
    ("return " + "[" * 150 + "]" * 150, 1, "deeper than 100"),
    ("x = 1" + "0" * 40 + "\nreturn E0", 1, "constant"),
    ("x = 9\nfor i in range(99):\n    x = x * x\nreturn E0", 3, "2^62"),
    ("x = D\nfor i in range(9):\n    x = x * x\nreturn E0", 3, "64 factors"),
    ("for i in range(10**9):\n    x = i\nreturn E0", 1, "Pow"),
    ("for i in range(999999999):\n    x = i\nreturn E0", 2, "200000 steps"),
    (
        "L = [[0], [0]]\n" + "L = [L, L]\n" * 30 + "x = [[k for k in j] for j in [list(i) for i in L]]\nreturn E0[0]",
        33,
        "E0",
    ),
    ("L = []\nfor i in range(20000):\n    L.append(step.Repeat(n=2).apply(E0))\nreturn L[0]", 3, "10000 applications"),
    ("x = step.Map(fn=fn_sq)\nreturn x.apply(E0, name=3, other=4)", 2, "keywords other"),
    ("a, b = step.Map(fn=fn_sq).apply(E0)\nreturn a", 1, "stream"),
    ("a, b = [E0]\nreturn a", 1, "1 values for 2 names"),
    ("x = [E0][3]\nreturn x", 1, "index 3 of 1"),
    ("x = len(3)\nreturn E0", 1, "len of 3"),
    ("x = zip([E0], [E1])\nreturn E0", 1, "a call of zip"),
    ("E0.append(E1)\nreturn E0", 1, "stream E0 E0"),
    ("x = " + "a" * 70000 + "\nreturn E0", None, "at most 65536"),
]

ENDINGS = [
    ("retrn E5", 7, "return E5"),
    ("Return E5, E0", 8, "return E5, E0"),
    ("returns E5", 9, "return E5"),
    ("output: E5", 1, "return E5"),
    ("  return E5", 2, "return E5"),
    ("return E5)", 10, "return E5"),
    ("return = E5", 8, "return E5"),
    ("retrn step.Map(fn=fn_sq).apply(E5)", 7, "return step.Map(fn=fn_sq).apply(E5)"),
    ("retrn(E5)", 1, "return E5"),
    ("print(E5)", 1, "return E5"),
    ("returnE5", 1, "return E5"),
    ("yield E5", 1, "return E5"),
    ("E5", 1, "return E5"),
    ("E6 = E5", 1, "return E6"),
    ("pass", 1, "return E5"),
    ("retrn E9", 7, "return E5"),  # it has no E9
    ("# return E5", 1, "return E5"),
    ("return step.Map(fn=fn_sq).apply(E5", 32, "close the bracket"),
]


@pytest.mark.parametrize(("last", "column", "remedy"), ENDINGS)
def test_a_last_line_that_returns_nothing_gets_a_column_and_the_return_it_was_meant_to_be(last, column, remedy):
    (finding,) = report(f"E5 = step.Map(fn=fn_sq).apply(E0)\n\n{last}\n# the end").errors
    assert (finding.kind, finding.column, finding.remedy) == ("LANG", column, remedy)
    assert f", column {column}: " in finding.block()


def test_a_name_in_quotes_is_told_to_lose_them():
    (finding,) = report("return 'E0'").errors
    assert finding.remedy == "E0 without quotes"


@pytest.mark.parametrize(("program", "line", "words"), LANG)
def test_what_is_outside_the_language_is_refused_at_parse(program, line, words):
    found = report(program)
    assert found.stage == Stage("PARSE")
    assert found.graph is None
    assert any(words in str(error) for error in found.errors), [str(error) for error in found.errors]
    if line is not None:
        assert line in {error.line for error in found.errors}


TYPE = [
    (PLAIN, "return step.Zip().apply((E0, E1, E3))", "3 streams"),
    (PLAIN, "return step.Zip().apply((E0,))", "1 streams"),
    (PLAIN, "return step.Zip().apply((E0, E3))", "dims [N]"),
    (PLAIN, "return step.Map(fn=fn_add).apply(E0)", "zip the missing field first"),
    (PLAIN, "return step.Map(fn=fn_sq).apply([E0, E1])", "[step.Map(fn=fn_x).apply(s) for s in E2]"),
    (PLAIN, "return step.Map(fn=fn_sum).apply(E0)", "step.Accum(fn=fn_sum, b=1)"),
    (PLAIN, "return step.Map(fn=E1).apply(E0)", "one of the task's fns"),
    (PLAIN, "return step.Accum(fn=fn_sq, b=1).apply(E0)", "step.Map(fn=fn_sq)"),
    (PLAIN, "return step.Accum(fn=fn_sum, b=1).apply(E3)", "step.Promote(b=1) first"),
    (PLAIN, "return step.Accum(fn=fn_sum, b=0).apply(E0)", "1 <= b <= rank"),
    (PLAIN, "return step.Accum(fn=fn_sum, b=1).apply((E0, E1))", "step.Zip().apply((E0, E1)) first"),
    (PLAIN, "return step.Scan(fn=fn_sum, b=2).apply(E0)", "step.Promote(b=2) first"),
    (PLAIN, "return step.Scan(fn=fn_sum, b=M).apply(E0)", "b=M_value"),
    (PLAIN, "return step.Promote(b=3).apply(E0)", "0 <= b <= 2"),
    (PLAIN, "return step.Promote(b=-1).apply(E0)", "0 <= b <= 2"),
    (PLAIN, "return step.Flatten(L=1).apply(E0)", "L=[1]"),
    (PLAIN, "return step.Flatten(L=[]).apply(E0)", "an empty list"),
    (PLAIN, "return step.Flatten(L=[0]).apply(E0)", "entries from 1 to 1"),
    (PLAIN, "return step.Flatten(L=[2]).apply(E0)", "entries from 1 to 1"),
    (PLAIN, "return step.Flatten(L=[-1]).apply(E0)", "entries from 1 to 1"),
    (PLAIN, "A = step.Promote(b=0).apply(E0)\nreturn step.Flatten(L=[2, 1]).apply(A)", "ascending"),
    (PLAIN, "A = step.Promote(b=0).apply(E0)\nreturn step.Flatten(L=[1, 1]).apply(A)", "ascending"),
    (
        PLAIN,
        "A = step.Promote(b=0).apply(step.Promote(b=0).apply(E0))\nreturn step.Flatten(L=[1, 3]).apply(A)",
        "consecutive",
    ),
    (PLAIN, "return step.Reshape(S=2, L=[0]).apply(E0)", "a multiple of 2"),
    (PLAIN, "return step.Reshape(S=2, L=[1, 1]).apply(E0)", "different dims"),
    (PLAIN, "return step.Reshape(S=2, L=[2]).apply(E0)", "entries from 0 to 1"),
    (PLAIN, "return step.Repeat(n=0).apply(E0)", "a dim >= 1"),
    (PLAIN, "return step.Repeat(n=E1).apply(E0)", "n = stream E1"),
    (PLAIN, "return step.Repeat(n=D/3).apply(E0)", "not an integer"),
    (
        PLAIN,
        "A = step.Repeat(n=3).apply(E3)\nreturn step.Zip().apply((E0, A))",
        "3 is the value of M here; write M, not 3",
    ),
    (PLAIN, "return step.RepeatRef().apply((E0, E3))", "one extra INNERMOST dim"),
    (PLAIN, "return step.Bufferize(a=2).apply(E0)", "step.Promote(b=2) first"),
    (PLAIN, "return step.Bufferize(a=0).apply(E0)", "1 <= a <= rank"),
    (PLAIN, "return step.Streamify().apply(E0)", "already unbuffered"),
    (TUPLE, "return step.Streamify().apply(step.Zip().apply((E0, E1)))", "Buffers of equal dims"),
    (ROUTED, "return step.Streamify().apply(E1)", "already unbuffered"),
    (PLAIN, "A = step.Copy().apply(E0)\nreturn step.Map(fn=fn_sq).apply(A)", "A, B = step.Copy().apply(E0)"),
    (PLAIN, "A = step.Copy().apply(E0)\nreturn step.Streamify().apply(A)", "A, B = step.Copy().apply(E0)"),
    (ROUTED, "return step.Partition(N=2).apply((E0, E2))[0]", "a Multihot index"),
    (ROUTED, "return step.Partition(N=3).apply((E0, E1))[0]", "N = 2"),
    (ROUTED, "return step.Partition(N=2).apply((E0, E3))[0]", "data of dims [..., N]"),
    (ROUTED, "return step.Partition(N=M*2).apply((E0, E1))[0]", "N=E_value"),
    (
        ROUTED,
        "A, I = step.Copy().apply(E1)\nX, Y = step.Partition(N=2).apply((E0, A))\nreturn step.Merge(fn=fn_sum).apply(([Y, X], I))",
        "keep the list's order",
    ),
    (
        ROUTED,
        "A, I = step.Copy().apply(E1)\nX, Y = step.Partition(N=2).apply((E0, A))\nreturn step.Merge(fn=fn_sum).apply(([X], I))",
        "all 2 streams",
    ),
    (
        ROUTED,
        "A, I = step.Copy().apply(E1)\nX, Y = step.Partition(N=2).apply((E0, A))\nreturn step.Merge(fn=fn_sum).apply((X, I))",
        "a list of streams first",
    ),
    (
        ROUTED,
        "A, I = step.Copy().apply(E1)\nX, Y = step.Partition(N=2).apply((E0, A))\nreturn step.Merge(fn=fn_sq).apply(([X, Y], I))",
        "a stateful fn",
    ),
    (
        ROUTED,
        "X, Y = step.Partition(N=2).apply((E0, E1))\nreturn step.Merge(fn=fn_sum).apply(([X, Y], E3))",
        "the index of Partition on line 1",
    ),
    (
        ROUTED,
        "A, I = step.Copy().apply(E1)\nX, Y = step.Partition(N=2).apply((E0, A))\nX = step.Promote(b=1).apply(X)\nreturn step.Merge(fn=fn_sum).apply(([X, Y], I))",
        "the routed dim",
    ),
    (PLAIN, "return E0, E1", "2 outputs"),
    (PLAIN, "return E3", "fp32 [N]"),
    (PLAIN, "return [step.Map(fn=fn_sq)]", "the primitive Map"),
]


@pytest.mark.parametrize(("task", "program", "words"), TYPE)
def test_a_broken_type_rule_is_refused_with_its_remedy(task, program, words):
    found = report(program, task)
    assert found.stage == Stage("TYPE"), [str(error) for error in found.errors]
    assert any(words in str(error) for error in found.errors), [str(error) for error in found.errors]


def test_a_merge_of_two_partitions_is_refused():
    program = (
        "A, I = step.Copy().apply(E1)\nB, C = step.Copy().apply(A)\nX, Y = step.Copy().apply(E0)\n"
        "P = step.Partition(N=2).apply((X, B))\nQ = step.Partition(N=2).apply((Y, C))\n"
        "return step.Merge(fn=fn_sum).apply(([P[0], Q[1]], I))"
    )
    assert "different Partitions" in str(report(program, ROUTED).errors[0])


ACCEPT = [
    (spec("fp32 [1, N]", "fp32 [1, N]"), "return E0"),
    (spec("Buffer(fp32, [N*K]) [1]", "fp32 [K*N, 1]"), "return step.Streamify().apply(E0)"),
    (spec("fp32 [M, N]", "fp32 [N*M]"), "return step.Flatten(L=[1]).apply(E0)"),
    (spec("fp32 [M, N]", "fp32 [N*M]"), "return step.Flatten(L=(1,)).apply(E0)"),
    (spec("fp32 [D, N]", "fp32 [D, N]"), "A = step.Reshape(S=2, L=[0]).apply(E0)\nreturn step.Flatten(L=[1]).apply(A)"),
    (spec("fp32 [N]", "fp32 [D, N]"), "return step.Repeat(n=D_value).apply(E0)"),
    (spec("fp32 [N]", "fp32 [D, N]"), "return step.RepeatLast(n=D).apply(E0)"),
    (spec("fp32 [N]", "fp32 [2*D, N]"), "return step.Repeat(n=D_value * 2).apply(E0)"),
    (spec("Multihot(fp32, E) [N]", "Multihot(fp32, E) [M, N]"), "return step.Repeat(n=M).apply(E0)"),
    (
        spec("fp32 [M, N]", "fp32 [M, N]"),
        "# a comment\n\nE0 = step.Map(fn=fn_sq).apply(E0)\n\nE0 = step.Identity().apply(E0)\nreturn E0",
    ),
    (spec("fp32 [M, N]", "fp32 [M, N]"), "return step.Map(fn=fn_sq).apply(step.Map(fn=fn_neg).apply(input=E0))"),
    (
        spec("fp32 [M, N]", "fp32 [M, N]"),
        "    '''indented'''\n    op = step.Map(fn=fn_sq)\n    return op.apply(E0, name=E0)",
    ),
    (
        spec("fp32 [M, N]", "fp32 [M, N]; fp32 [M, N]"),
        "A = step.Map(fn=fn_sq).apply(E0)\nB = step.Map(fn=fn_neg).apply(A)\nreturn B, A",
    ),
    (spec("fp32 [M, N]", "fp32 [M, N]; fp32 [M, N]"), "return [E0, E0]"),
    (
        spec("fp32 [M]; Multihot(fp32, E) [M]", "fp32 [M]"),
        "I, J = step.Copy().apply(E1)\nL = step.Partition(N=E).apply((E0, I))\nL = [step.Map(fn=f).apply(x) for f, x in zip([fn_inc, fn_inc2], L)]\nreturn step.Merge(fn=fn_sum).apply((L, J))",
    ),
    (
        spec("fp32 [M]; Multihot(fp32, E) [M]", "fp32 [M]"),
        "I, J = step.Copy().apply(E1)\nL = step.Partition(N=E_value).apply((E0, I))\nT = []\nfor i, f in enumerate((fn_inc, fn_inc2)):\n    T.append(step.Map(fn=f).apply(L[i]))\nreturn step.Merge(fn=fn_sum).apply((T, J))",
    ),
    (spec("fp32 [M, N]; fp32 [M, N]; fp32 [M, N]", "fp32 [M, N]"), "return step.Map(fn=fn_add3).apply((E0, E1, E2))"),
    (
        spec("fp32 [M, N]; fp32 [M, N]", "[Buffer(fp32, [M]), Buffer(fp32, [M])] [N]"),
        "return step.Bufferize(a=1).apply(step.Zip().apply((E0, E1)))",
    ),
]


@pytest.mark.parametrize(("task", "program"), ACCEPT)
def test_right_programs_are_accepted(task, program):
    found = check_program(task, program)
    assert found.stage == Stage.RUN, [str(error) for error in found.errors]
    assert found.graph is not None


def test_one_mistake_gives_one_message_and_the_affine_count_goes_on():
    program = "A = step.Accum(fn=fn_sum, b=9).apply(E0)\nB = step.Map(fn=fn_sq).apply(A)\nC = step.Map(fn=fn_sq).apply(E0)\nreturn B"
    kinds = [error.kind for error in report(program).errors]
    assert kinds == ["TYPE", "AFFINE"]


def test_zip_of_lists_of_different_length_warns():
    program = "L = [x for x, y in zip([E0, E1], [1])]\nreturn L[0]"
    assert "stops at the shortest" in report(program).warnings[0]


def test_an_index_made_twice_warns_and_is_compared_when_the_program_runs():
    task = spec("fp32 [M]; Multihot(fp32, E) [M]; Multihot(fp32, E) [M, 1]", "fp32 [M]")
    program = (
        "I = step.Flatten(L=[1]).apply(E2)\nL = step.Partition(N=2).apply((E0, I))\n"
        "return step.Merge(fn=fn_sum).apply((L, E1))"
    )
    found = check_program(task, program)
    assert found.stage == Stage.RUN
    assert "compared when the program runs" in found.warnings[0]
    assert found.graph.nodes[-1].compare_index


def test_the_graph_says_which_sizes_shaped_it():
    task = spec("fp32 [M]; Multihot(fp32, E) [M]", "fp32 [M]")
    assert report("return step.Map(fn=fn_sq).apply(E0)").graph.reads == frozenset()
    assert check_program(task, "L = step.Partition(N=2).apply((E0, E1))\nreturn L[0]").errors
    loops = "x = E0\nfor i in range(M_value):\n    x = step.Map(fn=fn_sq).apply(x)\nreturn x"
    assert check_program(task, loops).graph.reads == {"M"}
    assert len(check_program(task, loops, task.sizes | {"M": 5}).graph.nodes) == 5


BOMBS = [
    ("x = E0\nfor i in range(30):\n    x = step.Zip().apply((x, x))\nreturn x", "a tuple of 128 fields"),
    ("x = E0\nfor i in range(9000):\n    x = step.Promote(b=0).apply(x)\nreturn x", "33 stream and element dims"),
    ("return step.Flatten(L=[1, 2**0, 4000000000]).apply(E0)", "the operator Pow"),
    ("return step.Flatten(L=[1, 4000000000]).apply(E0)", "consecutive dims"),
    (
        "L = [E0 for i in range(30000)]\nL = tuple(L)\nfor i in range(60):\n    x = step.Map(fn=fn_sq).apply(L)\nreturn x",
        "steps",
    ),
    (
        "L = [E0 for i in range(99)]\nL = [L for i in range(99)]\nfor i in range(9999):\n    x = step.Zip().apply(L)\nreturn x",
        "steps",
    ),
    ("L = [1 for i in range(20000)]\nreturn step.Flatten(L=L).apply(E0)", "at most 32 whole numbers"),
    ("for i in range(60000):\n    x = step.Partition(N=1000).apply((E0, 3))\nreturn E0", "steps"),
    (f"for i in range(60000):\n    x = undefined, [{'1, ' * 20000}]\nreturn E0", "steps"),
    (f"x = undefined\nfor i in range(60000):\n    {'a, ' * 20000} = x\nreturn E0", "steps"),
    (f"return {'a' * 60000}", "aaa...; expected"),
    (f"x = ({'+'.join('1' * 400)})()\nreturn E0", "a call of binop"),
]


@pytest.mark.parametrize(("program", "words"), BOMBS, ids=[words for _, words in BOMBS])
def test_a_short_text_cannot_ask_for_much_work_or_long_messages(program, words):
    with lasts_at_most(6.0):  # the longest takes 0.7 s; without limits it would be minutes
        found = report(program)
    assert found.errors
    assert sum(len(str(error)) for error in found.errors) < 50_000
    assert any(words in str(error) for error in found.errors)


def test_a_loop_that_fails_again_and_again_is_reported_once():
    found = report("for i in range(200):\n    x = step.Mapp()\nreturn E0")
    assert [error.line for error in found.errors] == [2]


def test_a_dim_without_a_whole_value_is_an_error_and_no_crash():
    task = spec("fp32 [D/2, N]; fp32 [8, N]", "fp32 [D/2, N]")
    program = "for i in range(D_value):\n    x = step.Zip().apply((E0, E1))\nreturn E0"
    found = check_program(task, program, task.sizes | {"D": 17})
    assert found.stage == Stage("TYPE")
    assert "dims [8, N]" in str(found.errors[0])


def test_the_variable_of_a_comprehension_is_local_and_what_it_hides_comes_back():
    assert report("L = [E1 for E0 in [1, 2]]\nreturn E0").stage == Stage.RUN
    assert "x, which is not defined" in str(report("L = [x for x in [E0]]\nreturn x").errors[0])
