"""The processes that hold TVM: a nursery that imports it once, and a confined fork of it for each program.

A fork parses and compiles the texts that it is sent and answers with assembly, or with what TVM said and where. It can
read nothing and start nothing; parsing executes parts of a text, which `source` has looked at. Nobody else
imports this.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.modules.setdefault("torch", None)  # type: ignore[arg-type]  # it would be imported for a bridge: seconds

import tvm
from tvm.script.ir_builder import IRBuilder
from tvm.script.parser import tirx as script
from tvm.script.parser.core.diagnostics import Source
from tvm.script.parser.core.error import ParserError
from tvm.script.parser.core.parser import Parser

from opsmith.running.channel import read_frame, write_frame
from opsmith.running.sandbox import Sandbox, confine_candidate
from opsmith.targets.native.signature import FUNCTION

_PROBE = f"""
@T.prim_func(s_tir=True)
def {FUNCTION}(x_handle: T.handle, M: T.int64):
    x = T.match_buffer(x_handle, (M,), "float32")
    for m in T.parallel(M):
        with T.sblock("double"):
            i = T.axis.spatial(M, m)
            x[i] = x[i] + T.exp(x[i])
"""
_DEBUGGING = re.compile(r"^\t\.(?:file|loc)\t.*\n", re.MULTILINE)  # in a form that older assemblers do not read
_SECONDS = 40  # of processor time


def load() -> None:
    """Compile once, so that forks find all that is made at first use."""
    compile_text(_PROBE, "x86-64")


def serve_build(fds: Sequence[int], sandbox: Sandbox) -> None:
    """One request, JSON of texts by name and the processor; its answer: the assembly by name, or what is wrong."""
    request = json.loads(read_frame(fds[0]) or b"{}")
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS + 1))
    confine_candidate(sandbox, [Path("/dev/urandom")])
    write_frame(fds[0], json.dumps(compile_texts(request["texts"], request["processor"])).encode())


def compile_texts(texts: Mapping[str, str], processor: str) -> dict[str, Any]:
    assembly = {}
    for name, text in texts.items():
        try:
            assembly[name] = compile_text(text, processor)
        except ParserError as error:
            return {"name": name, "message": str(error.args[0]), "line": getattr(error.node, "lineno", 0)}
        except Exception as error:  # whatever TVM raises: the text is at fault
            return {"name": name, "message": f"{type(error).__name__}: {error}", "line": 0}
    return {"assembly": assembly}


def compile_text(text: str, processor: str) -> str:
    """The assembly of one function. Raises ParserError, and whatever TVM raises."""
    parser = Parser(Source(text), {})
    with IRBuilder() as builder:
        parser.parse(extra_vars={"T": script})
    module = tvm.IRModule({FUNCTION: builder.get().with_attr("global_symbol", FUNCTION)})
    tvm.s_tir.analysis.verify_well_formed(module)
    target = {"kind": "llvm", **({"mcpu": processor} if processor.startswith("x86") else {})}
    assembly: str = tvm.compile(module, target=target).mod.inspect_source("asm")
    return _DEBUGGING.sub("", assembly)
