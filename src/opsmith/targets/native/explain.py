"""Why did a candidate crash, or touch memory that is not its own? It is built with sanitizers and called once more.

The program is compiled anew with AddressSanitizer and UndefinedBehaviorSanitizer and called by a driver of ours on the
draws of the trial, confined like a command that may start no process. An explanation never changes a verdict: where
there is none (no sanitizer on this machine, a program that behaves there, a limit), the finding stands alone.
Uninitialised memory is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opsmith.problems.dtypes import BYTES_BY_DTYPE
from opsmith.problems.problem import ArrayType, Problem
from opsmith.records import Diagnostic
from opsmith.running.commands import CommandFailure, CommandLimits, CommandOrder, run_commands
from opsmith.running.compiler import Artefact, CompileOrder, run_compiler
from opsmith.running.toolchain import find_toolchain
from opsmith.targets.native.build import HEADER, SOURCE
from opsmith.targets.native.flags import BuildFlags, Isa
from opsmith.targets.native.layout import read_inputs
from opsmith.targets.native.sanitized import DRIVER, PROGRAM, CallData, write_calls, write_commands, write_driver
from opsmith.targets.native.sanitizer_report import ArrayLabel, ReportReader
from opsmith.targets.native.signature import make_signature
from opsmith.targets.native.task import read_native_task

LIMITS = CommandLimits(
    cpu_seconds=4, seconds=15.0, memory=None, resident=2 << 30, file_bytes=0, printed_bytes=1 << 12, open_files=32
)  # it writes no files
_LARGEST_ALLOCATION = 1024  # MiB, of the candidate's own: malloc gives NULL beyond
_CALLS, _ASSEMBLY = "calls.bin", "program.s"


@dataclass(frozen=True)
class FailedProgram:
    """A program that failed, and the calls of the trial where it did."""

    problem: Problem
    source: str
    flags: BuildFlags
    calls: Sequence[CallData]
    threads: int = 1
    assembly: str = ""  # what is linked with it


def read_program(task_text: str, source: str, isa: Isa, inputs: bytes | memoryview) -> FailedProgram:
    """The program of a task's text on a trial's inputs. Raises ValueError or the like for inputs that are none."""
    problem, options = read_native_task(task_text)
    layout, arrays = read_inputs(memoryview(inputs))
    calls = [CallData(views, draw.outputs, draw.numbers) for draw, views in zip(layout.draws, arrays, strict=True)]
    return FailedProgram(problem, source, options.choose_flags(isa), calls, options.threads)


def explain_failure(failed: FailedProgram, limits: CommandLimits = LIMITS) -> tuple[Diagnostic, ...]:
    """What sanitizers say of it; none: they see nothing, or cannot be asked."""
    reader = ReportReader(failed.source, SOURCE, tuple(_label_arrays(failed.problem)))
    return reader.read_report(run_with_sanitizers(failed, limits))


def run_with_sanitizers(failed: FailedProgram, limits: CommandLimits = LIMITS) -> str:
    """What the program and sanitizers print; "": they cannot be asked."""
    toolchain, program = find_toolchain(), _build_program(failed)
    if toolchain is None or program is None:
        return ""
    order = CommandOrder(
        {PROGRAM: program, _CALLS: write_calls(failed.calls)},
        [[f"./{PROGRAM}"]],
        environment={"OMP_NUM_THREADS": str(failed.threads)},
        readable=toolchain.readable,
        stdin=_CALLS,
        has_processes=False,
        executes_folder=True,
    )
    result = run_commands(order, limits)
    return "" if isinstance(result, CommandFailure) else result.messages


def _build_program(failed: FailedProgram) -> bytes | None:
    """The executable; None: this machine has no sanitizers, or the program does not link with a driver."""
    signature = make_signature(failed.problem)
    files = {
        SOURCE: failed.source.encode("utf-8", "replace"),
        HEADER: signature.header.encode(),
        DRIVER: write_driver(signature, _LARGEST_ALLOCATION).encode(),
        **({_ASSEMBLY: failed.assembly.encode()} if failed.assembly else {}),
    }
    sources = [SOURCE, *([_ASSEMBLY] if failed.assembly else [])]
    result = run_compiler(CompileOrder(files, write_commands(failed.flags, sources, HEADER), PROGRAM))
    return result.data if isinstance(result, Artefact) else None


def _label_arrays(problem: Problem) -> Iterator[ArrayLabel]:
    """Inputs, then outputs, as the signature has them."""
    for tensor in problem.tensors:
        yield _label_array(f"input {tensor.name}", tensor.type, True)
    for output in problem.outputs:
        for name, type_ in zip(output.tensor_names, output.types, strict=True):
            yield _label_array(f"output {name}", type_, False)


def _label_array(words: str, type_: ArrayType, is_input: bool) -> ArrayLabel:
    factors = [str(dim) for dim in type_.shape]
    formula = " * ".join(f"({factor})" if "/" in factor and len(factors) > 1 else factor for factor in factors)
    return ArrayLabel(words, formula, BYTES_BY_DTYPE[type_.dtype], is_input)
