"""The processes that hold Triton's compiler: a nursery that imports it once, a confined fork of it for each program.

A fork compiles kernels to PTX and answers with that, or with what Triton said and where. It can read nothing but
Triton's own files, and start nothing: ptxas runs in a process of its own (`compiling`). Nobody else imports this.
"""

from __future__ import annotations

import json
import linecache
import resource
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

sys.modules.setdefault("torch", None)  # type: ignore[arg-type]  # it is not needed, and takes seconds

import triton
from triton import knobs
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptxas_version
from triton.compiler import ASTSource, CompilationError, make_backend

from opsmith.running.channel import read_frame, write_frame
from opsmith.running.sandbox import Sandbox, confine_candidate
from opsmith.targets.gpu.nvidia.devices import DEVICE

PROGRAM = "program.py"
_PROBE = """
import triton
import triton.language as tl


@triton.jit
def probe(x, N, BLOCK: tl.constexpr):
    n = tl.arange(0, BLOCK)
    y = tl.load(x + n, mask=n < N, other=0.0)
    tl.store(x, tl.sum(tl.exp(y), axis=0) + tl.max(y, axis=0))
"""
_SECONDS = 40  # of processor time


def load() -> None:
    """Compile once, so that forks find all that is made at first use."""
    knobs.compilation.disable_line_info = True  # kernels are joined: their line tables would clash
    options = {"num_warps": 4, "num_stages": 3}
    kernel = {"kernel": "probe", "types": ["*fp32", "i32"], "aligned": [0], "constants": [["BLOCK", 64]]}
    for arch in (90, 100):
        get_ptxas_version(arch)
        compile_kernels(_PROBE, arch, [{**kernel, "options": options, "line": 0}])


def serve_build(fds: Sequence[int], sandbox: Sandbox) -> None:
    """One request: the program, an architecture, what is compiled. Its answer: `kernels`, or what is wrong."""
    request = json.loads(read_frame(fds[0]) or b"{}")
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS + 1))
    confine_candidate(sandbox, [Path("/dev/urandom"), *map(Path, triton.__path__)])
    answer = compile_kernels(request["source"], request["arch"], request["kernels"])
    write_frame(fds[0], json.dumps(answer).encode())


def compile_kernels(source: str, arch: int, kernels: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """PTX, and what a launch of each needs; or a message, the line of the program and that of the launch."""
    compiled = []
    for kernel in kernels:
        try:
            compiled.append(_compile_kernel(source, arch, kernel))
        except Exception as error:  # whatever Triton raises: the text is at fault
            return {"message": _word_error(error), "line": _find_line(error, source), "launch": kernel["line"]}
    return {"kernels": compiled}


def _compile_kernel(source: str, arch: int, kernel: Mapping[str, Any]) -> dict[str, Any]:
    function = _load_program(source)[kernel["kernel"]]
    constants = {parameter.name for parameter in function.params if parameter.is_constexpr}
    names = [parameter.name for parameter in function.params if parameter.name not in constants]
    types = dict(zip(names, kernel["types"], strict=True))
    places = {parameter.name: place for place, parameter in enumerate(function.params)}
    signature = {name: "constexpr" if name in constants or types[name] == "1" else types[name] for name in places}
    values = {**dict(kernel["constants"]), **{name: 1 for name, type_ in types.items() if type_ == "1"}}
    aligned = {(places[names[place]],): [["tt.divisibility", 16]] for place in kernel["aligned"]}
    text = ASTSource(function, signature, constexprs=values, attrs=aligned)
    target = GPUTarget(DEVICE, arch, 32)
    backend = make_backend(target)
    options = backend.parse_options({**dict(kernel["options"]), **text.parse_options()})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, text.language)
    code: Any = text.make_ir(
        target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    metadata: dict[str, Any] = {"target": target, **options.__dict__}
    for name, stage in stages.items():
        if name != "cubin":
            code = stage(code, metadata)
    return {"ptx": code, "shared": metadata["shared"], "scratch": metadata["global_scratch_size"]}


def _load_program(source: str) -> Mapping[str, Any]:
    """The functions of a text that `source.check_source` lets pass."""
    linecache.cache[PROGRAM] = (len(source), None, source.splitlines(keepends=True), PROGRAM)
    module = ModuleType("program")
    exec(compile(source, PROGRAM, "exec"), module.__dict__)
    return vars(module)


def _list_causes(error: BaseException | None) -> list[BaseException]:
    causes = []
    while error is not None:
        causes.append(error)
        error = error.__cause__
    return causes


def _word_error(error: BaseException) -> str:
    causes = _list_causes(error)
    texts = [getattr(each, "error_message", None) or str(each) for each in causes]
    own = [each.error_message for each in causes if isinstance(each, CompilationError) and each.error_message]
    return str(own[-1] if own else texts[-1]) or type(error).__name__


def _find_line(error: BaseException, source: str) -> int:
    """Of the innermost place that lies in the program; 0: it says none."""
    lines = source.split("\n")
    for each in reversed(_list_causes(error)):
        if isinstance(each, CompilationError) and each.src is not None and hasattr(each.node, "lineno"):
            head = each.src.partition("\n")[0]
            if head in lines:
                return lines.index(head) + int(each.node.lineno)
    return 0
