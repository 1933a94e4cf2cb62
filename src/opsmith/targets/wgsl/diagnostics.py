"""What naga and WebGPU say of a program, as findings: the line, what was given, what was expected, what to try."""

from __future__ import annotations

import re

from opsmith.records import Diagnostic
from opsmith.targets.native.messages import Advice, choose_advice, cut_line, join_line, show_line

KIND = "COMPILE"

_MESSAGE = re.compile(r"^Shader '[^']*' parsing error: (.+)$|^Shader validation error: (.+)$", re.MULTILINE)
_PLACE = re.compile(r"┌─ (?:wgsl)?:(\d+):(\d+)")
_LABEL = re.compile(r"^ *│ *[ ^│]*\^+ *(.*)$", re.MULTILINE)
_CAUSE = re.compile(r"^ *= (?!note)(.+)$", re.MULTILINE)
_NOTE = re.compile(r"^ *= note: (.+)$", re.MULTILINE)
_HANDLE = re.compile(r"naga::ir::\w+ ")
_ADVICE: Advice = (
    (r"no definition in scope for identifier: `(.+?)`", "a name that the program declares, or WGSL's own",
     "declare {0}, or correct its spelling"),
    (r"expected (.+?), found", "{0}", "close what is open on that line or on the one before"),
    (r"automatic conversions cannot convert", "a value of the type on the left", "convert it: f32(x), u32(x), i32(x)"),
    (r"is expected to be `(.+?)`, but got", "{0}", "convert it: f32(x), u32(x), i32(x)"),
    (r"not a boolean|to be a boolean", "a bool", "compare: x != 0u"),
    (r"invalid left-hand side", "a var, or an entry of what may be written", ""),
    (r"Constructor expects (\d+) components", "{0} components", ""),
    (r"can't work with|Incompatible operands|failed to convert|Abstract types", "operands of one type",
     "convert one of them: f32(x), u32(x), i32(x)"),
    (r"doesn't relate to a valid destination", "a write to var<storage, read_write>, var<workgroup> or a var",
     "inputs are var<storage, read>: write to outputs"),
    (r"enable extension is not enabled", "`enable f16;` before all declarations", "add it"),
    (r"atomic operation is done on a pointer to a non-atomic", "an atomic<u32> or atomic<i32>", "declare it as one"),
    (r"workgroup size .*(?:total invocation limit|per-dimension)", "at most 256 invocations, 256 x 256 x 64",
     "let invocations loop"),
    (r"out of \[\d+\] bounds|Accessing index", "an index within the array", ""),
    (r"redefinition of|conflicting", "one declaration of a name", "take another name"),
    (r"doesn't match the declared return type|match the declared return", "a return of the declared type on every path",
     "end the function with a return"),
    (r"overflowed", "constants within their type", "compute it in f32, or at run time"),
    (r"max_storage_buffers_per_shader_stage|storage_buffers_per", "at most 8 arrays a kernel", "split the kernel"),
    (r"invalid field accessor", "a field of the structure, or x y z w", "look at its declaration"),
)  # fmt: skip


def explain_words(words: str, source: str) -> tuple[Diagnostic, ...]:
    """The finding of a refusal; naga stops at the first error."""
    match = _MESSAGE.search(words)
    rows = [row.strip() for row in words.splitlines() if row.strip()] or ["a program that is refused without a word"]
    message = next(filter(None, match.groups()), "") if match else rows[-1]
    cause = _CAUSE.findall(words)
    label = next((text for text in _LABEL.findall(words) if text and "naga::" not in text and text != "see msg"), "")
    details = [detail for detail in (label, *cause[-1:]) if detail and detail not in message]
    is_vague = message.endswith("is invalid") and bool(details)
    actual = _clean_text("; ".join(details if is_vague else [message, *details]))
    expected, remedy = choose_advice(" ".join((message, label, *cause)), _ADVICE, _clean_text, "WGSL that naga takes")
    remedy = remedy or _clean_text(next(iter(_NOTE.findall(words)), ""))
    place = _PLACE.search(words)
    if place is None:
        return (Diagnostic(KIND, "program", actual, expected, remedy),)
    line, column = _find_required(words) or (int(place[1]), int(place[2]))
    text = show_line(source.split("\n"), line)
    return (Diagnostic(KIND, "program", actual, expected, remedy, line, column, text),)


def _find_required(words: str) -> tuple[int, int | None] | None:
    """The line where a value of another type is required: naga names the place where the value came from."""
    line = None
    for row in words.splitlines():
        number = re.match(r"(\d+) │", row)
        line = int(number[1]) if number else line
        if row.endswith("is required here") and line is not None:
            return line, None
    return None


def explain_limit(limit: str) -> Diagnostic:
    actual, expected = "a program that takes naga more than its limit", f"at most {limit}"
    return Diagnostic(KIND, "compiler", actual, expected, "write a shorter program, with smaller constants")


def explain_breakdown() -> Diagnostic:
    remedy = "write it more simply: less nesting, shorter expressions, smaller arrays"
    return Diagnostic(KIND, "compiler", "a program on which naga broke down", "one that it can compile", remedy)


def _clean_text(text: str) -> str:
    return cut_line(join_line(_HANDLE.sub("", text)))
