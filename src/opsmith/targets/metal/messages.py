"""What clang says of a Metal program that it reads as C++ for OpenCL, as findings in Metal's words."""

from __future__ import annotations

import re

from opsmith.records import Diagnostic
from opsmith.targets.native.messages import Advice, choose_advice, cut_line, join_line, show_line

KIND = "COMPILE"
MOST = 5  # findings of one compile
_ERROR = re.compile(r"^checked\.metal:(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$", re.MULTILINE)
_INNER = re.compile(r"^(?:\./)?opsmith_metal\.h:\d+:\d+: error: (?P<text>.*)$", re.MULTILINE)
_AT = re.compile(r"^checked\.metal:(?P<line>\d+):\d+: note: ", re.MULTILINE)
_AKA = re.compile(r" \(aka '[^']*'\)")
_WORDS = (  # what OpenCL calls it, and what Metal does
    (re.compile(r"\bconst __constant\b|\b__constant\b"), "constant"),
    (re.compile(r"\b__global\b"), "device"),
    (re.compile(r"\b__local\b"), "threadgroup"),
    (re.compile(r"\blocal address space\b"), "threadgroup memory"),
    (re.compile(r"\b__private\b ?"), ""),
    (re.compile(r"\b__generic\b ?"), ""),
    (re.compile(r"__attribute__\(\(ext_vector_type\((\d)\)\)\)"), r"x\1"),
    (re.compile(r"\bmetal_atomic_"), "atomic_"),
    (re.compile(r"\bopsmith_vector\b"), "the vector"),
    (re.compile(r"\b(local|global|generic)_\b"), r"\1"),
    (re.compile(r"C\+\+ for OpenCL(?: version \w+)?|OpenCL(?: C)?(?: version [\d.]+)?"), "Metal"),
)
_ADVICE: Advice = (
    (r"changes address space|different address space|address space of|address space qualif|"
     r"'(?:const )?(?:device|threadgroup|constant) .* (?:with|to|from) .*'(?:const )?(?:device|threadgroup|constant) ",
     "a pointer of the same address space",
     "declare the pointer with the address space of what it points to"),
    (r"(?:unknown type name|undeclared identifier) '(u?(?:char|short|int|long)|half|float|bfloat|uint|ulong)([234])?'",
     "Metal's types by their names", "write `using namespace metal;` behind #include <metal_stdlib>"),
    (r"unknown type name '(.+?)'", "a type of Metal or of the program", "declare {0}, or correct its spelling"),
    (r"use of undeclared identifier '(.+?)'", "a name that is declared above its use",
     "declare {0}, write `using namespace metal;`, or correct its spelling"),
    (r"no member named '(.+?)' in namespace 'metal'", "a name of Metal's library", "correct the spelling of {0}"),
    (r"read-only variable|const-qualified|discards qualifiers|drops 'const'", "a write to an output",
     "inputs are const: write to outputs only"),
    (r"cannot initialize (?:a|an) (?:variable|parameter).* of type '(.+?)'", "a value of type {0}", "convert it"),
    (r"no matching function for call to '(.+?)'", "arguments that a form of {0} takes",
     "look at their number, types and address spaces, and convert them"),
    (r"call to '(.+?)' is ambiguous", "arguments of equal types", "convert the arguments of {0} to one type"),
    (r"no matching function for call to 'atomic|no known conversion", "arguments that it takes", "convert them"),
    (r"invalid operands to binary expression", "operands that the operator takes", "convert one of them"),
    (r"cannot be used as the type of a kernel parameter", "an array or a number of its own", ""),
    (r"redefinition of '(.+?)'", "one definition of {0}", "remove one of them, or rename it"),
    (r"in threadgroup memory|in the threadgroup address space|address space cannot have an initializer",
     "threadgroup memory declared in the kernel's own body", "declare it there, and write it before it is read"),
    (r"does not have a constant initializer", "a value that the compiler computes", "write the number, or constexpr"),
    (r"too (?:few|many) arguments", "the number of arguments that it takes", "look at its declaration"),
    (r"^expected (.+)$", "{0}", "close what is open on that line or on the one before"),
    (r"illegal vector component name|vector component access", "components x y z w or r g b a", ""),
    (r"components that do not add up", "as many components as the vector has", ""),
    (r"use of type 'double'|type 'double'", "float: Metal has no double", "write float, and 1.0f in place of 1.0"),
)  # fmt: skip


def explain_messages(messages: str, source: str) -> tuple[Diagnostic, ...]:
    """The findings of a program that is refused, one at least."""
    lines = source.split("\n")
    pairs = [(int(match["line"]), match["text"]) for match in _ERROR.finditer(messages)]
    pairs += [
        (int(place["line"]), match["text"])
        for match in _INNER.finditer(messages)
        if (place := _AT.search(messages, match.end())) is not None
    ]
    findings = dict[Diagnostic, None]()
    for number, text in pairs:
        said = _say(text)
        expected, remedy = choose_advice(said, _ADVICE, lambda name: cut_line(join_line(name)), "Metal")
        findings[Diagnostic(KIND, "program", said, expected, remedy, number, None, show_line(lines, number))] = None
    if findings:
        return tuple(findings)[:MOST]
    actual, remedy = "a program on which clang broke down", "write it more simply: less nesting, shorter expressions"
    return (Diagnostic(KIND, "compiler", actual, "one that it can compile", remedy),)


def _say(text: str) -> str:
    text = _AKA.sub("", text)
    for pattern, word in _WORDS:
        text = pattern.sub(word, text)
    return cut_line(join_line(text))
