"""All rewritings of a program that apply to it, by name, line and numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

from opsmith.targets.programs import TuningMove
from opsmith_lab.c.tuning.accumulators import split_accumulators
from opsmith_lab.c.tuning.divisions import hoist_division, list_divisions
from opsmith_lab.c.tuning.extremes import list_extreme_calls, replace_extremes
from opsmith_lab.c.tuning.halves import list_half_uses, replace_halves
from opsmith_lab.c.tuning.layout import indent_program
from opsmith_lab.c.tuning.speculation import hoist_call, list_conditional_calls
from opsmith_lab.c.tuning.syntax import CountedLoop, SyntaxTree, read_range
from opsmith_lab.c.tuning.tiling import TileAxis, TilePlan, has_gathering, list_parallel_chains, write_tile
from opsmith_lab.c.tuning.vectorising import (
    Edits,
    VectorLoop,
    declare_vector_functions,
    edit_vector_loop,
    find_vector_calls,
    has_pragma,
    list_undeclared,
    list_vector_loops,
)

TILES = ((1, 32), (1, 64), (4, 16), (4, 32), (4, 64), (6, 32), (8, 16), (8, 32))  # rows x columns
INTERLEAVED = (4, 8)  # rows at once
ACCUMULATORS = (32, 64, 128)


@dataclass(frozen=True)
class _Rewriting:
    move: TuningMove
    rewrite: Callable[[], str | None]


def list_moves(source: str) -> list[TuningMove]:
    """In the order of the program, equal for equal texts; none for a text that is no program."""
    return [rewriting.move for rewriting in _gather_rewritings(source)]


def apply_move(source: str, move: TuningMove) -> str | None:
    """The program after a move that `list_moves` gave for it; None: it does not apply."""
    for rewriting in _gather_rewritings(source):
        each = rewriting.move
        if (each.name, each.line, dict(each.parameters)) == (move.name, move.line, dict(move.parameters)):
            text = rewriting.rewrite()
            return indent_program(text) if text is not None else None
    return None


@lru_cache(maxsize=16)  # a program is asked about several times, and a long one takes seconds
def _gather_rewritings(source: str) -> tuple[_Rewriting, ...]:
    return tuple(_list_rewritings(source))


def _list_rewritings(source: str) -> Iterator[_Rewriting]:
    tree = SyntaxTree(source)
    if not tree.is_whole:
        return
    yield from _list_vectorisings(tree)
    yield from _list_exchanges(tree)
    yield from _list_accumulators(tree)
    yield from _list_tiles(tree)


# -- expressions


def _list_exchanges(tree: SyntaxTree) -> Iterator[_Rewriting]:
    if list_extreme_calls(tree):
        text = "the larger and the smaller of two numbers by a comparison instead of a call"
        yield _Rewriting(TuningMove("select-extreme", 0, text), partial(replace_extremes, tree))
    if list_half_uses(tree):
        text = "numbers of 16 bits widened and narrowed by operations on whole numbers, which run in vectors"
        yield _Rewriting(TuningMove("widen-halves", 0, text), partial(replace_halves, tree))
    for division in list_divisions(tree):
        text = f"one division by {division.divisor} before the loop over {division.loop.variable}, products in it"
        move = TuningMove("hoist-division", division.loop.line, text)
        yield _Rewriting(move, partial(hoist_division, tree, division))
    for conditional in list_conditional_calls(tree):
        text = f"{conditional.function} called whether or not its result is chosen, so that the loop has no branch"
        move = TuningMove("hoist-call", conditional.statement.start_point[0] + 1, text)
        yield _Rewriting(move, partial(hoist_call, tree, conditional))


def _list_accumulators(tree: SyntaxTree) -> Iterator[_Rewriting]:
    for each in list_vector_loops(tree, True):
        if not each.reductions:
            continue
        for count in ACCUMULATORS:
            text = f"{count} partial results of {', '.join(r.name for r in each.reductions)} side by side"
            text += _name_vector_forms(tree, each)
            move = TuningMove("accumulators", each.loop.line, text, {"count": count})
            yield _Rewriting(move, partial(split_accumulators, tree, each, count))


# -- vectors


def _list_vectorisings(tree: SyntaxTree) -> Iterator[_Rewriting]:
    vector_loops = list(list_vector_loops(tree))
    calling = [each for each in list_vector_loops(tree, True) if list_undeclared(tree, each.calls)]
    if calling:
        names = sorted({name for each in calling for name in list_undeclared(tree, each.calls)})
        text = f"vector forms of {', '.join(names)}, less exact, with the loops that call them side by side in vectors"
        yield _Rewriting(TuningMove("vector-math", 0, text), partial(_vectorise, tree, calling))
    if len(vector_loops) > 1:
        text = "all innermost loops whose turns are independent run in vectors, sums and extremes with a lane each"
        text += _name_vector_forms(tree, *vector_loops)
        yield _Rewriting(TuningMove("vectorise-all", 0, text), partial(_vectorise, tree, vector_loops))
    for each in vector_loops:
        name = "vectorise-reduction" if each.reductions else "vectorise-loop"
        what = (
            f"with partial results of {', '.join(r.name for r in each.reductions)} in lanes" if each.reductions else ""
        )
        text = f"the loop over {each.loop.variable} in vectors {what}".strip() + _name_vector_forms(tree, each)
        yield _Rewriting(TuningMove(name, each.loop.line, text), partial(_vectorise, tree, [each]))


def _name_vector_forms(tree: SyntaxTree, *loops: VectorLoop) -> str:
    """That functions are called in other forms too, which may be all that a loop gains by, and are less exact."""
    names = ", ".join(sorted({name for each in loops for name in list_undeclared(tree, each.calls)}))
    return f", and vector forms of {names}, which are less exact" if names else ""


def _vectorise(tree: SyntaxTree, vector_loops: list[VectorLoop]) -> str:
    edits: Edits = {}
    for each in vector_loops:
        if not has_pragma(each.loop.node):
            edit_vector_loop(tree, each, edits)
    declare_vector_functions(tree, sorted({name for each in vector_loops for name in each.calls}), edits)
    return tree.replace_ranges(edits)


# -- tiles


def _list_tiles(tree: SyntaxTree) -> Iterator[_Rewriting]:
    for plan in _list_plans(tree):
        edits: Edits = {}
        outer = plan.chain[0]
        text = write_tile(tree, plan)
        if text is not None:
            edits[read_range(outer.node)] = text
            declare_vector_functions(tree, sorted(find_vector_calls(outer.node)), edits)
            yield _Rewriting(_describe_tile(plan), partial(tree.replace_ranges, edits))


def _describe_tile(plan: TilePlan) -> TuningMove:
    counts = " x ".join(str(axis.count) for axis in plan.axes)
    names = ", ".join(axis.loop.variable for axis in plan.axes)
    if not plan.is_vector:
        text = f"{counts} turns of the loop over {names} at once, so that none waits for the other"
        return TuningMove("interleave", plan.axes[0].loop.line, text, {"rows": plan.axes[0].count})
    rows = plan.axes[0].count if len(plan.axes) > 1 else 1
    text = f"the loops over {names} in tiles of {counts}, whose sums stay in registers"
    return TuningMove("tile", plan.axes[0].loop.line, text, {"rows": rows, "columns": plan.axes[-1].count})


def _list_plans(tree: SyntaxTree) -> Iterator[TilePlan]:
    for chain, tiled in list_parallel_chains(tree):
        last = chain[-1]
        if not has_gathering(last):
            continue
        if last in tiled:
            for rows, columns in TILES:
                if rows == 1:
                    yield TilePlan(chain[-1:], [_make_axis(tree, last, columns)], True)
                    continue
                for row_loop in tiled[:-1]:
                    start = chain.index(row_loop)
                    axes = [_make_axis(tree, row_loop, rows), _make_axis(tree, last, columns)]
                    yield TilePlan(chain[start:], axes, True)
            for rows in INTERLEAVED:
                yield TilePlan([last], [_make_axis(tree, last, rows)], False)


def _make_axis(tree: SyntaxTree, loop: CountedLoop, count: int) -> TileAxis:
    return TileAxis(loop, count, tree.make_name(f"{loop.variable}_start"), tree.make_name(f"{loop.variable}_place"))
