"""A program's forms, built: one look of naga at them in a confined process of its own, then the check of barriers."""

from __future__ import annotations

import json
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from opsmith.records import Diagnostic
from opsmith.running.commands import CommandFailure, CommandLimits, CommandOrder, CommandResult, run_commands
from opsmith.targets.gpu.plan import BoundPlan
from opsmith.targets.programs import Build
from opsmith.targets.wgsl import webgpu
from opsmith.targets.wgsl.checking import FORMS, PROGRAM
from opsmith.targets.wgsl.diagnostics import explain_breakdown, explain_limit, explain_words
from opsmith.targets.wgsl.instrumenting import CHECKED, PLAIN, REVERSED, write_forms
from opsmith.targets.wgsl.uniformity import check_uniformity

_OWN = Path(__file__).parents[3]  # where our package lies
_MODULE = "opsmith.targets.wgsl.checking"
_LIMITS = CommandLimits(cpu_seconds=10, seconds=60.0, memory=None, resident=1 << 30, threads=64)
_THREADS = 4  # that the driver starts in a candidate's process: fewer than a build may ask for
_SOUND = "@compute @workgroup_size(1)\nfn probe() { }\n"


def build_forms(source: str, plan: BoundPlan) -> Build:
    """The forms of a program that PARSE let pass, or the findings, or what of ours failed."""
    forms = write_forms(source, plan)
    findings = _compile_forms(source, forms, list(plan.list_kernels()))
    if isinstance(findings, str):
        return Build({}, failure=findings)
    findings = findings or check_uniformity(source)
    if findings:
        return Build({}, findings)
    return Build(forms, toolchain=describe_driver(), threads=_THREADS)


def _compile_forms(source: str, forms: Mapping[str, bytes], kernels: Sequence[str]) -> tuple[Diagnostic, ...] | str:
    """The findings; none: they compile. A text: what of ours failed."""
    files = {
        PROGRAM: source.encode(),
        **dict(zip(FORMS, (forms[name] for name in (PLAIN, REVERSED, CHECKED)), strict=True)),
    }
    result = run_commands(_write_order(files, kernels), _LIMITS)
    if isinstance(result, CommandFailure):
        return result.reason
    answer = _read_answer(result)
    if answer is None:
        return _judge_breakdown(result)
    if "form" in answer:
        return f"a form of the program that is ours is refused: {answer['form']}"
    return explain_words(str(answer["program"]), source) if "program" in answer else ()


@cache
def describe_driver() -> str:
    """`wgpu 0.32.0 llvmpipe (LLVM 15.0.6, 256 bits), Mesa 22.3.6 (LLVM 15.0.6)`, as a process of its own says it."""
    result = run_commands(_write_order({}, ()), _LIMITS)
    answer = _read_answer(result) if isinstance(result, CommandResult) else None
    return f"{webgpu.name_package()} {answer['device'] if answer is not None else 'no device'}"


def _write_order(files: Mapping[str, bytes], kernels: Sequence[str]) -> CommandOrder:
    library = webgpu.find_library()
    python = [sys.executable, "-S", "-P", "-B", "-m", _MODULE, str(library), *kernels]
    environment = {"PYTHONPATH": str(_OWN), "LC_ALL": "C", "PYTHONHASHSEED": "0"}
    return CommandOrder(files, [python], (), environment, _list_readable(), has_processes=False)


@cache
def _list_readable() -> tuple[Path, ...]:
    """Python, our package, and what runs programs."""
    python = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    executable, library = Path(sys.executable), Path(str(sysconfig.get_config_var("LIBDIR") or "/usr/lib"))
    folders = (executable, executable.resolve(), *python, library, _OWN, Path(sys.prefix) / "pyvenv.cfg")
    return (*folders, *webgpu.list_runtime())


def _read_answer(result: CommandResult) -> dict[str, object] | None:
    """Its last line; None: it gave none."""
    try:
        answer = json.loads(result.printed.strip().splitlines()[-1]) if result.is_ended_well else None
    except (ValueError, IndexError):
        return None
    return answer if isinstance(answer, dict) else None


def _judge_breakdown(result: CommandResult) -> tuple[Diagnostic, ...] | str:
    """Whose fault is it that there is no answer? A refusal counts only where a right program is compiled."""
    if result.is_late:
        return f"the compiler had not ended after {_LIMITS.seconds:g} s; is the machine too busy?"
    if reason := _find_unsound():
        return reason
    return (explain_limit(result.limit),) if result.limit else (explain_breakdown(),)


def _find_unsound() -> str:
    """Why a right program is not compiled; "": it is."""
    files = dict.fromkeys((PROGRAM, *FORMS), _SOUND.encode())
    result = run_commands(_write_order(files, ["probe"]), _LIMITS)
    if isinstance(result, CommandFailure):
        return result.reason
    if _read_answer(result) == {}:
        return ""
    words = " ".join(result.messages.split())[-300:]
    return f"the compiler refuses a right program too: {result.limit or words or result.codes}"
