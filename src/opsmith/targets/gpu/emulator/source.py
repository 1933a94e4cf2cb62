"""A program and its plan as the C++ that is compiled: what is rewritten, what calls the kernels, what is not emulated.

The program stands on its own lines of its file, which a file of ours includes; what calls a kernel has the line of
its launch, so that the compiler tells a mismatch there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opsmith.targets.gpu.emulator.dialect import EmulatedDialect
from opsmith.targets.gpu.plan import INPUT, NUMBER, WHOLE, BoundArgument, BoundLaunch, BoundPlan

MAIN = "opsmith_kernel.cpp"
MARK = "opsmith: "  # begins what static_assert says of a launch
MOST_SHARED = 128  # declarations of memory of a block

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_FOREIGN = (  # in every language
    (re.compile(r"\b__attribute__\s*\(\(\s*no_sanitize|\bno_sanitize\b|#\s*pragma\s+GCC\b"), "attributes of gcc"),
    (re.compile(r"\bopsmith\w*|\bOPSMITH\w*|\b__tsan_\w+|\b__ubsan_\w+"), "names of the emulator"),
)


def find_foreign(dialect: EmulatedDialect, source: str) -> tuple[int, str] | None:
    """The first line that uses what is not emulated, and what that is in words."""
    text = blank_texts(source)
    uses = (
        (match.start(), words) for pattern, words in (*dialect.foreign, *_FOREIGN) if (match := pattern.search(text))
    )
    first = min(uses, default=None)
    if first is None and len(re.findall(rf"\b{dialect.shared}\b", text)) > MOST_SHARED:
        return 1, f"more than {MOST_SHARED} declarations with {dialect.shared}"
    return None if first is None else (text.count("\n", 0, first[0]) + 1, first[1])


def blank_texts(source: str) -> str:
    """Blanks for comments, strings and characters; the lines stay."""
    return _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)


def write_main(dialect: EmulatedDialect, source: str, plan: BoundPlan) -> str:
    """The file that is compiled."""
    headers = [name for name, pattern in dialect.includes.items() if pattern is None or pattern.search(source)]
    return "\n".join(
        [
            *(f'#include "{name}"' for name in headers),
            "namespace {",
            f'#include "{dialect.program}"',
            "}  // namespace",
            *(line for number, launch in enumerate(plan.launches) for line in _write_launch(dialect, number, launch)),
            "",
        ]
    )


def _write_launch(dialect: EmulatedDialect, number: int, launch: BoundLaunch) -> Iterator[str]:
    arguments = launch.arguments
    place = f'#line {launch.line} "{dialect.program}"'
    signature, kernel = f"opsmith_signature_{number}", dialect.entry.format(launch.kernel)
    yield from (place, f"typedef opsmith::Kernel<decltype(&{kernel})> {signature};")
    count = f"{launch.kernel} takes another number of arguments than the {len(arguments)} of args"
    yield from (place, f'static_assert({signature}::count == {len(arguments)}, "{MARK}{count}");')
    for i, argument in enumerate(arguments):
        words = f"{MARK}{launch.kernel} takes {describe_argument(dialect, argument)} with another type of parameter"
        yield from (place, f'static_assert({signature}::template takes<{i}, {_write_tag(argument)}>(), "{words}");')
    tags = ", ".join(map(_write_tag, arguments))
    call = f"opsmith::call<{tags}>({kernel});" if arguments else f"{kernel}();"
    yield from (place, f'extern "C" __attribute__((visibility("default"))) void {name_entry(number)}() {{ {call} }}')


def name_entry(number: int) -> str:
    """The function of a launch in the library."""
    return f"opsmith_kernel_{number}"


def _write_tag(argument: BoundArgument) -> str:
    if argument.kind == NUMBER:
        return "opsmith::Whole" if argument.type == WHOLE else "opsmith::Real"
    container = "Input" if argument.kind == INPUT else "Array"
    return f"opsmith::{container}<opsmith::{'boolean' if argument.type == 'bool' else argument.type}>"


def describe_argument(dialect: EmulatedDialect, argument: BoundArgument) -> str:
    """`the input x, fp32: const float *`."""
    if argument.kind == NUMBER:
        return f"the number {argument.name}, {'int or long long' if argument.type == WHOLE else 'float or double'}"
    const = "const " if argument.kind == INPUT else ""
    return f"the {argument.kind} {argument.name}, {argument.type}: {const}{dialect.pointers[argument.type]}"


def list_parameters(source: str, kernel: str) -> Sequence[str]:
    """The parameters of a kernel as they are written; empty where they cannot be told."""
    match = re.search(rf"\b{re.escape(kernel)}\s*\(([^()]*)\)", blank_texts(source))
    return [" ".join(part.split()) for part in match[1].split(",")] if match and match[1].strip() else []
