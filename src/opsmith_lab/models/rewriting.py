"""What the tuner makes of a program: the moves that a suggestion names, or drawn ones.

A suggestion is read as any analyst writes it: moves are known by their names in its words, a place by its line's number
or text. Higher temperatures draw other parameters and further moves.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from opsmith.records import Suggestion
from opsmith.targets.programs import TuningMove
from opsmith.targets.protocols import Tuner

EVERYWHERE = "everywhere"
_MOST_STEPS = 12  # moves that one suggestion leads to
_MOST_DRAWS = 8  # programs that are tried where earlier turns answered with the first ones
_OTHER_PARAMETERS, _FURTHER_MOVE = 0.3, 0.3  # chances at temperature 1
_QUOTED = re.compile(r"`([^`]+)`")
_LINE = re.compile(r"\blines?\s+(\d+)")


class Rewriter:
    """Programs from a program, by a language's moves."""

    def __init__(self, tuner: Tuner) -> None:
        self._tuner = tuner

    def list_programs(
        self, source: str, suggestion: Suggestion | None, temperature: float, rng: random.Random, is_first: bool
    ) -> Iterator[str]:
        """Rewritten programs, what is to be answered first; later turns take back what the first one did."""
        if suggestion is not None:
            if is_first:
                yield from self._vary_program(
                    self._follow_words(source, suggestion, temperature, rng), temperature, rng
                )
            yield from self._follow_first(source, suggestion)
        for _ in range(_MOST_DRAWS):
            yield from self._vary_program(self._apply_drawn(source, rng), temperature, rng)

    def _vary_program(self, program: str | None, temperature: float, rng: random.Random) -> Iterator[str]:
        """The program, or at higher temperatures sometimes with a further move; nothing where there is none."""
        if program is None:
            return
        if rng.random() < _FURTHER_MOVE * temperature and (further := self._apply_drawn(program, rng)) is not None:
            yield further
        yield program

    def _apply_drawn(self, source: str, rng: random.Random) -> str | None:
        """The program after one move: its name is drawn first, so that a move of many places has no more of a say."""
        moves = self._tuner.list_moves(source)
        if not moves:
            return None
        name = rng.choice(sorted({move.name for move in moves}))
        return self._tuner.apply_move(source, rng.choice([move for move in moves if move.name == name]))

    def _follow_first(self, source: str, suggestion: Suggestion) -> Iterator[str]:
        """The first of several moves that a suggestion names, without the others."""
        names = _order_names(suggestion.what, self._tuner.list_moves(source))
        if names and (program := self._apply_named(source, names[0], suggestion, None)) is not None:
            yield program

    def _follow_words(self, source: str, suggestion: Suggestion, temperature: float, rng: random.Random) -> str | None:
        """The program after the moves that the words name, in their order; None: they name none that applies."""
        program, followed = source, set[str]()
        draws = rng if rng.random() < _OTHER_PARAMETERS * temperature else None
        for _ in range(_MOST_STEPS):
            names = _order_names(suggestion.what, self._tuner.list_moves(program))
            name = next((name for name in names if name not in followed), None)
            if name is None:
                break
            followed.add(name)
            program = self._apply_named(program, name, suggestion, draws) or program
        return program if program != source else None

    def _apply_named(self, source: str, name: str, suggestion: Suggestion, rng: random.Random | None) -> str | None:
        """The program after the move of that name where the suggestion says, or wherever it applies."""
        if EVERYWHERE in suggestion.where.lower():
            return self._apply_everywhere(source, name, suggestion, rng)
        moves = [move for move in self._tuner.list_moves(source) if move.name == name]
        move = _choose_move(moves, source, suggestion, rng)
        return self._tuner.apply_move(source, move) if move is not None else None

    def _apply_everywhere(
        self, source: str, name: str, suggestion: Suggestion, rng: random.Random | None
    ) -> str | None:
        """Each place once, the last one first: what is above it stays what it is."""
        program = source
        for place in reversed(list(self._list_places(source, name))):
            moves = self._list_places(program, name).get(place, [])
            move = _choose_move(moves, program, suggestion, rng)
            program = (self._tuner.apply_move(program, move) if move is not None else None) or program
        return program if program != source else None

    def _list_places(self, source: str, name: str) -> dict[tuple[str, int], list[TuningMove]]:
        """The moves of a name by the text of their line, and which of the lines of that text it is."""
        places: dict[tuple[str, int], list[TuningMove]] = {}
        named = [move for move in self._tuner.list_moves(source) if move.name == name]
        for line in sorted({move.line for move in named})[:_MOST_STEPS]:
            text = read_line(source, line)
            number = sum(each == text for each, _ in places)
            places[text, number] = [move for move in named if move.line == line]
        return places


def _order_names(words: str, moves: Sequence[TuningMove]) -> list[str]:
    """The names of moves that stand in a text, in its order; a hyphen may be a blank there."""
    text = words.lower()
    places = {}
    for name in {move.name for move in moves}:
        pattern = re.escape(name.lower()).replace(r"\-", "[- ]")
        if (match := re.search(rf"(?<![\w-]){pattern}(?![\w-])", text)) is not None:
            places[name] = match.start()
    return sorted(places, key=lambda name: (places[name], -len(name)))


def _choose_move(
    moves: Sequence[TuningMove], source: str, suggestion: Suggestion, rng: random.Random | None
) -> TuningMove | None:
    """Where the suggestion says, with its parameters: of equal ones the first, or one that is drawn."""
    if not moves:
        return None
    fits = {id(move): _rate_place(move, source, suggestion.where) for move in moves}
    best = [move for move in moves if fits[id(move)] == max(fits.values())]
    if rng is not None:
        return rng.choice(best)
    return max(
        best, key=lambda move: sum(f"{name} {value}" in suggestion.what for name, value in move.parameters.items())
    )


def _rate_place(move: TuningMove, source: str, where: str) -> int:
    """2: the line's text stands there; 1: only its number does."""
    text = read_line(source, move.line)
    if text and any(text == quoted.strip() for quoted in _QUOTED.findall(where)):
        return 2
    return int(str(move.line) in _LINE.findall(where))


def read_line(source: str, number: int) -> str:
    """A line of a program, from 1, without the blanks around it; "": there is no such line."""
    lines = source.splitlines()
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""
