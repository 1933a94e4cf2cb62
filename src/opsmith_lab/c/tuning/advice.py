"""Which rewritings of a program are worth trying, and why: rules over its loops, compiler remarks and the roofline.

What is expected of a move are guesses, as they were seen on loops of many kinds; the measuring decides. A rule reads
loops and subscripts: no name of a variable or a problem has a say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from opsmith.targets.programs import Advice, TuningMove
from opsmith_lab.c.tuning.dependence import ArrayUse, list_array_uses
from opsmith_lab.c.tuning.evidence import Evidence, read_evidence
from opsmith_lab.c.tuning.moves import list_moves
from opsmith_lab.c.tuning.syntax import BLOCK, FOR, IF, CountedLoop, SyntaxTree, list_inner_loops, walk_nodes
from opsmith_lab.c.tuning.tiling import list_parallel_chains
from opsmith_lab.c.tuning.vectorising import VectorLoop, list_vector_loops

_LEAST = 0.2  # what cannot help by what is known is still tried now and then
_TILE_SIZES = {(8, 32): 1.0, (6, 32): 0.95, (4, 32): 0.95, (4, 64): 0.9, (8, 16): 0.85, (4, 16): 0.75, (1, 64): 0.6}
_CLEARING = ("widen-halves", "select-extreme", "hoist-call")  # moves that help others more than by themselves
_CLEARED, _MOST_COMBINED = 1.2, 4
_ROWS_OF_SUMS = {32: 0.95, 64: 1.0, 128: 0.9}
_OTHERS = {
    "widen-halves": (2.0, "numbers of 16 bits are converted one by one"),
    "select-extreme": (2.0, "a call for the larger of two numbers keeps a loop from running in vectors"),
    "hoist-call": (1.5, "a branch keeps a loop from running in vectors"),
    "hoist-division": (1.4, "a division takes as long as many products"),
}
_SMALL_STRIDE = 4  # elements from one turn to the next that a vector is still gathered from soon


@dataclass(frozen=True)
class _Reading:
    """What is known of a program."""

    tree: SyntaxTree
    vector_loops: Mapping[int, VectorLoop]  # by line
    evidence: Evidence


def list_advice(source: str, profiles: Mapping[str, str]) -> Sequence[Advice]:
    """The largest expected gain first."""
    tree = SyntaxTree(source)
    if not tree.is_whole:
        return ()
    vector_loops = {each.loop.line: each for each in list_vector_loops(tree)}
    reading = _Reading(tree, vector_loops, read_evidence(profiles))
    advice = [_weigh_move(reading, move) for move in list_moves(source)]
    advice += _combine_advice(advice)
    return sorted(advice, key=lambda each: -each.gain)


def _combine_advice(advice: Sequence[Advice]) -> list[Advice]:
    """The best moves after those that only clear their way."""
    clearing = list(dict.fromkeys(each.moves[0] for each in advice if each.moves[0] in _CLEARING))
    ranked = sorted((each for each in advice if each.moves[0] not in _CLEARING), key=lambda each: -each.gain)
    if not clearing:
        return []
    names = " and ".join(clearing)
    return [
        replace(
            each,
            moves=(*clearing, *each.moves),
            gain=each.gain * _CLEARED,
            why=f"{each.why}; {names} first, since the loop cannot run in vectors otherwise",
        )
        for each in ranked[:_MOST_COMBINED]
    ]


def _weigh_move(reading: _Reading, move: TuningMove) -> Advice:
    gain, why = _expect_gain(reading, move)
    if move.line and _is_fallback(reading.tree, move.line):
        gain, why = _LEAST, "these loops are run for small sizes only"
    reason = f"{why}; {reading.evidence.describe_limit()}".removesuffix("; ")
    gain = max(_LEAST, min(gain, reading.evidence.most_gain))
    return Advice((move.name,), move.line, gain, move.description, reason, move.parameters)


def _expect_gain(reading: _Reading, move: TuningMove) -> tuple[float, str]:
    if move.name == "tile":
        return _weigh_tile(reading, move)
    if move.name == "interleave":
        return _weigh_interleaving(reading, move)
    if move.name.startswith("vector"):
        return _weigh_vectors(reading, move)
    if move.name == "accumulators":
        return _weigh_accumulators(reading, move)
    return _OTHERS.get(move.name, (1.2, "it is often faster"))


# -- vectors


def _weigh_vectors(reading: _Reading, move: TuningMove) -> tuple[float, str]:
    """By the best of the loops that it is of; one that is of more of them is worth a little more."""
    loops = [each for line, each in reading.vector_loops.items() if move.line in (0, line)]
    if move.name == "vector-math":
        loops = [each for each in loops if each.calls]
    expected = [_weigh_vector_loop(reading, each) for each in loops]
    if not expected:
        return 1.0, "nothing is known of it"
    gain, why = max(expected)
    return gain * (1 + 0.1 * (sum(each > 1.2 for each, _ in expected) - 1)), why


def _weigh_vector_loop(reading: _Reading, vector_loop: VectorLoop) -> tuple[float, str]:
    line, remark = vector_loop.loop.line, reading.evidence.remarks.get(vector_loop.loop.line)
    remark_words = f"the compiler says of line {line}: {remark.text}" if remark is not None else ""
    if remark is not None and "unrolled whole" in remark.text:
        return 0.5, remark_words
    if vector_loop.calls:
        names = ", ".join(sorted(vector_loop.calls))
        return 6.0, remark_words or f"line {line} calls {names} for one number at a time"
    if vector_loop.reductions:
        names = ", ".join(each.name for each in vector_loop.reductions)
        return 4.0, remark_words or f"each addition to {names} in line {line} waits for the one before"
    if remark is not None and not remark.is_vectorised:
        return 3.0, remark_words
    return 1.05, remark_words or f"the compiler may not see that the turns of line {line} are independent"


def _weigh_accumulators(reading: _Reading, move: TuningMove) -> tuple[float, str]:
    """Sums side by side are as good as lanes of one vector, or better: no addition of a vector waits for another."""
    loop = next((each for each in reading.tree.loops if each.line == move.line), None)
    uses = _list_hot_uses(reading.tree, loop) or list_array_uses(reading.tree, loop.body) if loop is not None else None
    if loop is None or not uses or any(_find_step(use, loop) not in (0, 1) for use in uses):
        return 0.5, "what it adds lies far apart"
    remark = reading.evidence.remarks.get(move.line)
    if remark is not None and "unrolled whole" in remark.text:
        return 0.5, "the loop is short"
    remark_words = f"; the compiler says of line {move.line}: {remark.text}" if remark is not None else ""
    calls = ", ".join(sorted(reading.vector_loops[move.line].calls)) if move.line in reading.vector_loops else ""
    calling = f", and {calls} is called for one number at a time" if calls else ""
    gain = 4.2 * _ROWS_OF_SUMS.get(move.parameters.get("count", 0), 0.8)
    return gain, f"each sum waits for the one before{calling}{remark_words}"


# -- tiles


def _weigh_tile(reading: _Reading, move: TuningMove) -> tuple[float, str]:
    """By how the arrays of the hot loops lie along the tile's columns, and what its rows share."""
    chain = _find_chain(reading.tree, move.line)
    if not chain:
        return 1.0, "nothing is known of it"
    column = chain[-1]
    row = next((loop for loop in chain if loop.line == move.line), column)
    uses = _list_hot_uses(reading.tree, column)
    steps = [_find_step(use, column) for use in uses]
    size = _TILE_SIZES.get((move.parameters.get("rows", 1), move.parameters.get("columns", 1)), 0.5)
    if any(step is None for step in steps):
        return 0.5 * size, f"an array is read across its rows along {column.variable}: a vector of it is gathered"
    if not any(steps):
        return size, "the sums of a tile have nothing to share"
    gain, why = (8.0, "side by side") if max(map(_count_step, steps)) == 1 else (4.0, "a few elements apart")
    is_shared = row is not column and any(
        step and _find_step(use, row) == 0 for use, step in zip(uses, steps, strict=True)
    )
    shared = "; a vector that was loaded serves all rows of the tile" if is_shared else ""
    share = 1.0 if is_shared else 0.7
    return gain * size * share, f"sums over {column.variable} read numbers {why} and are kept in memory now{shared}"


def _count_step(step: int | None) -> int:
    return abs(step or 0)


def _find_step(use: ArrayUse, loop: CountedLoop) -> int | None:
    """Elements between what two turns of a loop touch; None: a row or more, or it is not seen."""
    factors = [subscript.find_factor(loop.variable) for subscript in use.subscripts]
    if any(factor is None for factor in factors) or any(factor is not None and factor.terms for factor in factors[:-1]):
        return None
    factor = factors[-1]
    number = factor.constant if factor is not None else None
    return number if number is not None and abs(number) <= _SMALL_STRIDE else None


def _list_hot_uses(tree: SyntaxTree, loop: CountedLoop) -> list[ArrayUse]:
    """Of arrays in the innermost loops of a body."""
    inner = [node for node in walk_nodes(loop.body) if node.type == FOR and not list_inner_loops(node)]
    return [use for node in inner for use in list_array_uses(tree, node) or ()]


def _find_chain(tree: SyntaxTree, line: int) -> Sequence[CountedLoop]:
    chains = (chain for chain, _ in list_parallel_chains(tree))
    return next((chain for chain in chains if any(loop.line == line for loop in chain)), ())


# -- interleaving


def _weigh_interleaving(reading: _Reading, move: TuningMove) -> tuple[float, str]:
    """It helps where nothing runs in vectors: sums that could do so are better off with them."""
    chain = _find_chain(reading.tree, move.line)
    inner = [loop for loop in reading.tree.loops if chain and _is_inside(loop, chain[-1])]
    if any(loop.line in reading.vector_loops for loop in inner):
        return 1.2, "several sums at once wait less, though vectors would do more"
    remarks = [reading.evidence.remarks.get(loop.line) for loop in inner if not list_inner_loops(loop.node)]
    if (
        any(remark is not None and remark.is_vectorised for remark in remarks)
        or b"#pragma omp simd" in reading.tree.source
    ):
        return 0.5, "the loops run in vectors already"
    return 2.0, "each turn of the inner loop waits for the one before, while other rows could go on"


def _is_inside(loop: CountedLoop, outer: CountedLoop) -> bool:
    return outer.node.start_byte < loop.node.start_byte and loop.node.end_byte <= outer.node.end_byte


def _is_fallback(tree: SyntaxTree, line: int) -> bool:
    """Whether loops at a line are the other branch of a condition whose first branch holds loops too."""
    return any(line == loop.line and any(_list_first_branches(loop)) for loop in tree.loops)


def _list_first_branches(loop: CountedLoop) -> Iterator[bool]:
    node = loop.node
    while node.parent is not None:
        if node.type in ("else_clause", BLOCK) and node.parent.type == IF:
            branch, alternative = (node.parent.child_by_field_name(name) for name in ("consequence", "alternative"))
            if branch is not None and alternative is not None and alternative.start_byte <= node.start_byte:
                yield bool(list_inner_loops(branch))
        node = node.parent
