"""The primitives as classes: `step.Map(fn=fn_x).apply(E0)` checks the types and returns a stream with data."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

from opsmith.records import Diagnostic
from opsmith.step.streams import StepError, context_of
from opsmith.targets.step.language.ops import KEYWORDS


class Op:
    """A primitive with its arguments, to be applied once or often; `targets.step.language.ops` has its type rule."""

    op: ClassVar[str] = ""

    def __init__(self, **keywords: Any) -> None:
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


class Map(Op):
    op = "Map"


class Zip(Op):
    op = "Zip"


class Accum(Op):
    op = "Accum"


class Scan(Op):
    op = "Scan"


class Promote(Op):
    op = "Promote"


class Flatten(Op):
    op = "Flatten"


class Reshape(Op):
    op = "Reshape"


class Repeat(Op):
    op = "Repeat"


class RepeatRef(Op):
    op = "RepeatRef"


class Bufferize(Op):
    op = "Bufferize"


class Streamify(Op):
    op = "Streamify"


class Copy(Op):
    op = "Copy"


class Identity(Op):
    op = "Identity"


class Partition(Op):
    op = "Partition"


class Merge(Op):
    op = "Merge"


RepeatLast = Repeat
