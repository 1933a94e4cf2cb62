"""The primitives as classes: `step.Map(fn=fn_x).apply(E0)` checks the types and returns a stream with data."""

from __future__ import annotations

import sys
from typing import Any

from opsmith.records import Diagnostic
from opsmith.step.streams import StepError, context_of
from opsmith.targets.step.language.ops import KEYWORDS


class Op:
    """A primitive with its arguments, to be applied once or often; `targets.step.language.ops` has its type rule."""

    def __init__(self, **keywords: Any) -> None:
        self.op = type(self).__name__
        names = KEYWORDS[self.op]
        if sorted(keywords) != sorted(names):
            given, expected = ", ".join(keywords) or "none", ", ".join(names) or "none"
            raise StepError([Diagnostic("LANG", f"step.{self.op}", f"keywords {given}", expected)])
        self.keywords = keywords

    def apply(self, input: Any, name: str = "") -> Any:
        """The resulting stream, or streams. Raises StepError."""
        line = sys._getframe(1).f_lineno
        ctx = context_of(input)
        if ctx is None:
            raise StepError([Diagnostic("TYPE", self.op, f"{type(input).__name__}", "a stream", line=line)])
        return ctx.apply(self.op, self.keywords, input, line)

    def __repr__(self) -> str:
        return f"step.{self.op}({', '.join(f'{key}={value!r}' for key, value in self.keywords.items())})"


class Map(Op): ...


class Zip(Op): ...


class Accum(Op): ...


class Scan(Op): ...


class Promote(Op): ...


class Flatten(Op): ...


class Reshape(Op): ...


class Repeat(Op): ...


class RepeatRef(Op): ...


class Bufferize(Op): ...


class Streamify(Op): ...


class Copy(Op): ...


class Identity(Op): ...


class Partition(Op): ...


class Merge(Op): ...


RepeatLast = Repeat
