"""One build of a TVMScript function: TVM makes assembly in a confined process, then gcc links it with a unit of ours.

Both results are kept in the cache of builds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from importlib.util import find_spec

from opsmith.records import Diagnostic
from opsmith.running.compiler import CompileFailure
from opsmith.targets.native.build import BuildRefusal
from opsmith.targets.native.cache import BuildCache, BuildKey
from opsmith.targets.native.diagnostics import KIND
from opsmith.targets.native.forked import ForkedCompiler
from opsmith.targets.native.messages import Advice, choose_advice, cut_line, hide_paths, place_finding, show_line

NO_TVM = "the language TVM: its compiler is not installed; try: pip install 'opsmith[tvm]' (320 MB installed)"
_COMPILER = ForkedCompiler("TVM", "opsmith.targets.tvm.tvm_process", "write it more simply: unroll less")
_FORM = "tvm assembly 2"  # raise it when what is made of a text changes
_IN_BLOCK = r"buffer (\w+) is used .*without a prior"
_INSIDE = re.compile(r" at <root>[^ ]*")  # where in TVM's own data
_ADVICE: Advice = (
    (
        _IN_BLOCK,
        "no scalar that is assigned within a block",
        "assign {0} before the block or write its expression out, or leave the block away: plain loops need none",
    ),
    (r"Undefined variable: (\w+)|name '(\w+)' is not defined", "a name that is assigned above its use", "define {0}"),
    (r"[Ii]ncompatible|[Cc]annot match type|mismatch", "operands of one type", 'convert one: T.Cast("float32", value)'),
    (r"[Ll]oad.*dimension|ndim|indices", "as many indices as the buffer has axes", "index every axis"),
    (r"well-formed|not defined|out of scope", "values that are defined where they are used", "move the definition"),
)


@dataclass(frozen=True)
class TvmOrder:
    """Functions by the variants that they are for, and the processor that they are compiled for."""

    problem: str  # digest
    texts: Mapping[str, str]
    processor: str


def explain_lack_of_tvm() -> str:
    return "" if find_spec("tvm") is not None else NO_TVM


@cache
def describe_tvm() -> str:
    """Its name and version."""
    return f"tvm {metadata.version('apache-tvm')}" if not explain_lack_of_tvm() else "no tvm"


def compile_texts(
    order: TvmOrder, source: str, store: BuildCache | None
) -> Mapping[str, str] | BuildRefusal | CompileFailure:
    """The assembly by name; `source`: what findings show lines of."""
    key = BuildKey(order.problem, _FORM, json.dumps(dict(order.texts)), order.processor, describe_tvm())
    data = store.fetch(key) if store is not None else None
    if data is None:
        answer = _COMPILER.ask({"texts": dict(order.texts), "processor": order.processor})
        if isinstance(answer, BuildRefusal | CompileFailure):
            return answer
        if answer.get("name"):  # a form of ours: the program itself compiles
            return CompileFailure(f"the program's form {answer['name']} does not compile: {answer['message']:.200}")
        if "assembly" not in answer:
            return BuildRefusal((_explain_message(str(answer["message"]), int(answer["line"] or 0), source),))
        data = json.dumps(answer["assembly"]).encode()
        if store is not None:
            store.store(key, data)
    return {str(name): str(text) for name, text in json.loads(data).items()}


def _explain_message(message: str, line: int, source: str) -> Diagnostic:
    """The last telling line of what TVM said."""
    rows = [
        row.strip() for row in message.splitlines() if row.strip() and not row.lstrip().startswith(("File ", "at "))
    ]
    text = next((row for row in reversed(rows) if re.search(r"[a-z]{3}", row)), "it refuses the program")
    expected, remedy = choose_advice(message, _ADVICE, hide_paths, "TVMScript that TVM takes")
    lines = source.split("\n")
    finding = Diagnostic(KIND, "program", cut_line(hide_paths(_INSIDE.sub("", text))), expected, remedy)
    if scalar := re.search(_IN_BLOCK, message):
        return place_finding(finding, rf"^\s*{scalar[1]}\s*=", lines)
    where = line if 1 <= line <= len(lines) else None
    return replace(finding, line=where, text=show_line(lines, where))
