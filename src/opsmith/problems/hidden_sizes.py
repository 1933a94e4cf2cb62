"""Hidden sizes: shape sets that a file does not state, drawn from a text, so that a program cannot be made for the
stated ones.

The text is a hash of the program's canonical form: equal programs get equal sizes, and a comment does not draw again.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping

from opsmith.problems.problem import Problem
from opsmith.problems.shape_sets import choose_shape_sets, has_whole_dims
from opsmith.records import content_hash

Sizes = Mapping[str, int]  # of every symbol of a problem

GROWTH = 1.3  # how far beyond the largest stated size, at least ...
REACH = 2.0  # ... and at most
MOST_NUMBERS = 2**22  # in all tensors of a draw
MOST_POINTS = 2**23  # of a loop nest over all symbols
ATTEMPTS = 24  # draws of one kind before it is given up
TINY, SMALL, MEDIUM = 3, 8, 67  # the largest sizes of such kinds

_PRIMES = tuple(number for number in range(2, 132) if all(number % factor for factor in range(2, number)))


def choose_hidden_sizes(problem: Problem, text: str, runs: Callable[[Sizes], bool]) -> list[Sizes]:
    """The sizes that belong to a text, the smallest kinds first: tiny, odd, prime ones, and for each symbol one of 1.3
    to 2 times the largest stated size.

    `runs` says whether data can be made and the reference runs at sizes where every dim is whole. A kind is left out
    where no attempt meets that within MOST_NUMBERS and MOST_POINTS.
    """
    source = random.Random(int(content_hash("hidden sizes", text)[:15], 16))
    taken_sizes = [{**problem.base_sizes, **sizes} for sizes in _list_stated(problem)]
    chosen: list[Sizes] = []
    for candidates in _list_kinds(problem, source):
        fitting = (
            sizes for sizes in candidates if _is_affordable(problem, sizes) and not _is_taken(sizes, taken_sizes)
        )
        sizes = next((sizes for sizes in fitting if runs(sizes)), None)
        if sizes is not None:
            chosen.append(sizes)
            taken_sizes.append(dict(sizes))
    return chosen


def write_sizes(sizes: Sizes) -> str:
    """`hidden sizes M = 5, N = 7`: what findings for a person call them."""
    return f"hidden sizes {', '.join(f'{name} = {size}' for name, size in sizes.items())}"


def _list_stated(problem: Problem) -> list[Sizes]:
    return [*choose_shape_sets(problem).values(), *problem.bench.values()]


def _list_symbols(problem: Problem) -> list[str]:
    """Those that have a size, in the order of the file."""
    return [name for name in problem.base_sizes if name in problem.symbols]


def _is_affordable(problem: Problem, sizes: Sizes) -> bool:
    if not has_whole_dims(problem, {**problem.base_sizes, **sizes}):
        return False
    return problem.count_numbers(sizes) <= MOST_NUMBERS and problem.count_points(sizes) <= MOST_POINTS


def _is_taken(sizes: Sizes, taken_sizes: list[dict[str, int]]) -> bool:
    return any(all(taken[name] == size for name, size in sizes.items()) for taken in taken_sizes)


def _list_kinds(problem: Problem, source: random.Random) -> Iterator[Iterator[Sizes]]:
    """Attempts of each kind. The second half of them is of even numbers, for dims such as D/2."""
    names = _list_symbols(problem)
    for draw in (_draw_tiny, _draw_odd, _draw_prime):
        yield ({name: draw(source) * _scale_attempt(attempt) for name in names} for attempt in range(ATTEMPTS))
    for name in names:
        yield (_draw_beyond(problem, name, source, attempt) for attempt in range(ATTEMPTS))


def _scale_attempt(attempt: int) -> int:
    return 1 if 2 * attempt < ATTEMPTS else 2


def _draw_tiny(source: random.Random) -> int:
    return source.randint(1, TINY)


def _draw_odd(source: random.Random) -> int:
    return 2 * source.randint(1, MEDIUM // 2) + 1


def _draw_prime(source: random.Random) -> int:
    return source.choice([prime for prime in _PRIMES if prime <= MEDIUM])


def _draw_beyond(problem: Problem, name: str, source: random.Random, attempt: int) -> Sizes:
    """One symbol larger than at any stated set, the others small or, in every second attempt, as in the base shape."""
    base = problem.base_sizes
    largest = max({**base, **sizes}[name] for sizes in _list_stated(problem))
    size = source.randint(math.ceil(GROWTH * largest), math.ceil(REACH * largest))
    is_small = attempt % 2 == 0
    sizes = {symbol: source.randint(1, SMALL) if is_small else base[symbol] for symbol in _list_symbols(problem)}
    return {**sizes, name: size}
