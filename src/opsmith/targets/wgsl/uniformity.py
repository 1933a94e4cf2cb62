"""Do barriers stand where all invocations of a workgroup come? WGSL's own rule, which naga does not hold a program to.

A value is uniform where all invocations of a workgroup have the same: constants, sizes, `workgroup_id`, entries of what
is only read at uniform places, and what is computed of those. What invocations read from memory that is written, and
what differs by invocation, is not; nor is a variable that is assigned such a value, or is assigned in a branch or loop
that such a value decides. A barrier there, or behind a `return`, `break` or `continue` there, is refused.

The rule is applied to a function with all its parameters (a kernel's builtins by their kind; others by what is passed
anywhere), on statements whose expressions are lists of names. It refuses no more than WGSL does, but for functions that
are called with uniform values here and others there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from opsmith.records import Diagnostic
from opsmith.targets.native.source_checks import run_text_checks
from opsmith.targets.wgsl.diagnostics import KIND
from opsmith.targets.wgsl.lexing import NAME, WgslToken
from opsmith.targets.wgsl.source import BARRIERS, UNIFORM_LOAD
from opsmith.targets.wgsl.syntax import Module, WgslFunction, list_names, match_brackets, read_module

_DEEPEST = 4  # loops within loops that are walked several times
_VARYING = frozenset({"local_invocation_id", "local_invocation_index", "global_invocation_id"})
_BLOCKS = frozenset({"if", "for", "while", "loop", "switch"})
_DECLARING = frozenset({"let", "var", "const"})
_LEAVING = frozenset({"return", "break", "continue"})
_ASSIGNING = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "++", "--"})


def check_uniformity(source: str) -> tuple[Diagnostic, ...]:
    """The first barrier of each function that not all invocations reach. `source`: compiles."""
    return run_text_checks(source, lambda text: _list_barriers(read_module(text)))


def _list_barriers(module: Module) -> Iterator[Diagnostic]:
    facts = _Facts(module)
    facts.follow_calls()
    for name, function in module.functions.items():
        barrier = facts.walkers[name].barrier
        if barrier is not None:
            line, word, cause = barrier
            actual = f"{word}() where not all invocations of a workgroup come: {cause}"
            expected = "barriers outside of what depends on the invocation, or on memory that is written"
            remedy = "close the branch or loop before the barrier and open it again behind; do not return before it"
            yield Diagnostic(KIND, f"function {function.name}", actual, expected, remedy, line)


class _Facts:
    """What is known of all functions, until nothing new is."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.varying: dict[str, set[str]] = {
            name: self._list_varying(entry) for name, entry in module.functions.items()
        }
        self.results: set[str] = set()  # functions that give varying values
        self.with_barrier = self._list_with_barrier()
        self.called_varying: dict[str, str] = {}  # functions that are called where not all invocations come: why
        self.walkers: dict[str, _Walker] = {}
        written = ("storage", "workgroup", "private")
        self.memory = {
            name for name, entry in module.variables.items() if entry.space in written and entry.access != "read"
        } - {name for name, entry in module.variables.items() if entry.space == "storage" and not entry.access}

    def _list_varying(self, function: WgslFunction) -> set[str]:
        """Parameters that differ by invocation; fields of a structure count as the whole."""
        return {
            parameter.name
            for parameter in function.parameters
            if any(builtin in _VARYING for builtin in self.module.list_builtins(parameter))
            and parameter.type not in self.module.structures
        }

    def _list_with_barrier(self) -> set[str]:
        words = BARRIERS | {UNIFORM_LOAD}
        reached = {name: self.module.list_reachable(name) for name in self.module.functions}
        return {name for name, functions in reached.items() if any(entry.names & words for entry in functions)}

    def follow_calls(self) -> None:
        """Walk through all functions until results and parameters stay what they are."""
        for _ in range(2 * len(self.module.functions) + 2):
            before = (len(self.results), sum(map(len, self.varying.values())), len(self.called_varying))
            for name, function in self.module.functions.items():
                self.walkers[name] = _Walker(self, function)
                self.walkers[name].walk_function()
            if before == (len(self.results), sum(map(len, self.varying.values())), len(self.called_varying)):
                return


@dataclass
class _Walker:
    """One function, statement by statement."""

    facts: _Facts
    function: WgslFunction
    barrier: tuple[int, str, str] | None = None  # line, word, why
    names: set[str] = field(default_factory=set)  # locals that vary
    hidden: dict[str, bool] = field(default_factory=dict)  # declared in this scope: whether it varied before
    depth: int = 0  # loops within loops
    left: str = ""  # why not all invocations are here any more

    def __post_init__(self) -> None:
        self.tokens = self.function.tokens
        self.match = match_brackets(self.tokens)
        self.names = set(self.facts.varying[self.function.name])

    def walk_function(self) -> None:
        self.left = self.facts.called_varying.get(self.function.name, "")
        self._walk_block(0, "")

    # -- statements; `cause` says what of the surroundings varies, "" nothing

    def _walk_block(self, opening: int, cause: str) -> int:
        """The statements between braces; gives the place behind them."""
        place, end = opening + 1, self.match[opening]
        hidden, self.hidden = self.hidden, {}
        while place < end:
            place = self._walk_statement(place, cause)
        self._leave_scope(hidden)
        return end + 1

    def _leave_scope(self, hidden: dict[str, bool]) -> None:
        """Names that were declared in a scope are again what they were outside."""
        for name, was_varying in self.hidden.items():
            if was_varying:
                self.names.add(name)
            else:
                self.names.discard(name)
        self.hidden = hidden

    def _walk_statement(self, place: int, cause: str) -> int:
        word = self.tokens[place].text
        if word == "{":
            return self._walk_block(place, cause)
        if word in _BLOCKS:
            return self._walk_branch(place, cause)
        if word in ("else", "continuing", "case", "default"):
            return place + 1
        end = self._find_end(place)
        if word in _LEAVING:
            self._leave(self.tokens[place:end], cause)
        else:
            self._assign(self.tokens[place:end], cause)
        return end + 1

    def _find_end(self, place: int) -> int:
        """Where a statement ends: its semicolon, or the brace behind it."""
        while place < len(self.tokens) and self.tokens[place].text not in (";", "}", "{"):
            place = self.match.get(place, place) + 1
        return place

    def _find_brace(self, place: int) -> int:
        """The one that opens a block, behind what decides it."""
        while self.tokens[place].text != "{":
            place = self.match.get(place, place) + 1
        return place

    def _walk_branch(self, place: int, cause: str) -> int:
        """if, for, while, loop, switch: what decides them, then their block, and what is left behind it."""
        word, start = self.tokens[place].text, place
        place += 1
        opening = self._find_brace(place)
        head = self.tokens[place:opening]
        before, loops = self.left, word in ("for", "while", "loop")
        hidden, self.hidden = self.hidden, {}
        self.depth += loops
        for _ in range(3 if loops and self.depth <= _DEEPEST else 1):  # values, and who has left, come round
            for piece in _split_statements(head) if word == "for" else [head]:
                self._assign(piece, cause)
            varying = self._find_cause(_find_condition(head) if word == "for" else head)
            reason = f"`{word}` of line {self.tokens[start].line} depends on {varying}" if varying else ""
            after = self._walk_arms(opening, cause or reason, word)
        self._leave_scope(hidden)
        self.depth -= loops
        inside = self.tokens[opening : self.match[opening]]
        if (loops or word == "switch") and all(token.text != "return" for token in inside):
            self.left = before  # who breaks comes out of it with the others
        return after

    def _walk_arms(self, opening: int, cause: str, word: str) -> int:
        after = self._walk_block(opening, cause)
        while word == "if" and after < len(self.tokens) and self.tokens[after].text == "else":
            following = after + 1
            if self.tokens[following].text == "if":
                head_end = self._find_brace(following + 1)
                varying = self._find_cause(self.tokens[following + 1 : head_end])
                line = self.tokens[following].line
                cause = cause or (f"`if` of line {line} depends on {varying}" if varying else "")
                after = self._walk_block(head_end, cause)
            else:
                after = self._walk_block(following, cause)
        return after

    def _leave(self, tokens: Sequence[WgslToken], cause: str) -> None:
        self._note_uses(tokens, cause)
        if tokens[0].text == "return" and (cause or self.left or self._find_cause(tokens[1:])) and len(tokens) > 1:
            self.facts.results.add(self.function.name)
        if tokens[0].text == "break" and len(tokens) > 2:  # break if
            varying = self._find_cause(tokens[2:])
            cause = cause or (f"`break if` of line {tokens[0].line} depends on {varying}" if varying else "")
        if cause and not self.left:
            self.left = f"{cause}, and `{tokens[0].text}` of line {tokens[0].line} leaves there"

    def _assign(self, tokens: Sequence[WgslToken], cause: str) -> None:
        """A declaration, an assignment or a call."""
        self._note_uses(tokens, cause)
        place = next((number for number, token in enumerate(tokens) if token.text in _ASSIGNING), None)
        if place is None or not tokens:
            return
        colon = next((number for number, token in enumerate(tokens[:place]) if token.text == ":"), place)
        left = [token for token in tokens[:colon] if token.kind == NAME and token.text not in _DECLARING]
        is_varying = bool(cause or self.left or self._find_cause(tokens[place + 1 :]) or self._find_cause(left[1:]))
        if not left or left[0].text in self.facts.module.variables:
            return
        name, is_declared = left[0].text, tokens[0].text in _DECLARING
        if is_declared:
            self.hidden.setdefault(name, name in self.names)
            self.names.discard(name)
        if is_varying:
            self.names.add(name)

    def _note_uses(self, tokens: Sequence[WgslToken], cause: str) -> None:
        """Barriers and calls among the words of a statement."""
        where = cause or self.left
        for number, token in list_names(tokens):
            if token.text in self.facts.module.functions:
                self._note_call(tokens, number, where)
            if token.text in BARRIERS | {UNIFORM_LOAD} and where and self.barrier is None:
                self.barrier = (token.line, token.text, where)

    def _note_call(self, tokens: Sequence[WgslToken], number: int, where: str) -> None:
        name = tokens[number].text
        if where and name in self.facts.with_barrier:
            self.facts.called_varying.setdefault(name, where)
        parameters = self.facts.module.functions[name].parameters
        for parameter, words in zip(parameters, _split_arguments(tokens[number + 1 :]), strict=False):
            if where or self._find_cause(words):
                self.facts.varying[name].add(parameter.name)

    def _find_cause(self, tokens: Sequence[WgslToken]) -> str:
        """What of an expression varies; "": nothing."""
        for number, token in list_names(tokens):
            if token.text in self.names:
                return token.text
            if self._is_varying_field(tokens, number) or token.text in self.facts.results:
                return token.text
            if token.text in self.facts.memory and not _is_uniform_load(tokens, number):
                return f"{token.text}, which is written"
        return ""

    def _is_varying_field(self, tokens: Sequence[WgslToken], number: int) -> bool:
        """Whether it is a field of a kernel's structure of builtins that differs by invocation."""
        parameter = next((entry for entry in self.function.parameters if entry.name == tokens[number].text), None)
        if parameter is None or not self.function.is_entry or number + 2 >= len(tokens):
            return False
        members = self.facts.module.structures.get(parameter.type, ())
        return any(member.name == tokens[number + 2].text and member.builtin in _VARYING for member in members)


def _is_uniform_load(tokens: Sequence[WgslToken], number: int) -> bool:
    """Whether it is read for all, or only its length is asked for."""
    words = [token.text for token in tokens[max(number - 3, 0) : number]]
    return words[-3:] in ([UNIFORM_LOAD, "(", "&"], ["arrayLength", "(", "&"])


def _split_statements(head: Sequence[WgslToken]) -> list[Sequence[WgslToken]]:
    """The three of a `for`, without its brackets."""
    pieces: list[list[WgslToken]] = [[]]
    for token in head[1:-1]:
        if token.text == ";":
            pieces.append([])
        else:
            pieces[-1].append(token)
    return [piece for piece in pieces if piece]


def _find_condition(head: Sequence[WgslToken]) -> Sequence[WgslToken]:
    places = [number for number, token in enumerate(head) if token.text == ";"]
    return head[places[0] + 1 : places[1]] if len(places) == 2 else ()


def _split_arguments(tokens: Sequence[WgslToken]) -> list[list[WgslToken]]:
    """Those of a call whose bracket comes first."""
    pieces: list[list[WgslToken]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text in "([{") - (token.text in ")]}")
        if depth == 0:
            break
        if token.text == "," and depth == 1:
            pieces.append([])
        elif not (token.text == "(" and depth == 1 and pieces == [[]]):
            pieces[-1].append(token)
    return pieces
