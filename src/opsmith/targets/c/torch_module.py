"""A right program in C as a file with `ModelNew`: host code around the kernel, compiled when the file is loaded.

The C stays C: the file calls the C compiler itself and loads the result with ctypes. torch's inline extension would
compile it as C++, which has no `restrict` and, before gcc 13, no `_Float16`, takes no `void *` for another pointer,
reads torch's headers for many seconds, and needs ninja. So torch and gcc are all that is needed.
"""

from __future__ import annotations

from opsmith.targets.c.library.package import find_judged_isa
from opsmith.targets.literals import write_literal
from opsmith.targets.native.flags import BuildFlags, list_features
from opsmith.targets.native.signature import FUNCTION, Signature, make_signature
from opsmith.targets.native.task import read_native_task
from opsmith.targets.native.torch_module.frame import make_frame, write_constants, write_head
from opsmith.targets.native.torch_module.host import CPU, write_checks, write_forward
from opsmith.targets.programs import Solved, TorchModule

_NOTES = (
    "The kernel runs on the CPU, for the types and shapes that are checked, in this process: nothing confines it.",
    "gcc compiles it when this file is loaded, with the flags of its verdict (CC names another compiler,",
    "OPSMITH_ISA another instruction set). It is C, which torch's inline extension would compile as C++.",
)
_IMPORTS = """
import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import torch
from torch import nn
""".strip("\n")
_BUILD = '''
def _opsmith_build():
    """The kernel as a function. Raises RuntimeError where it cannot be built or run."""
    isa = os.environ.get("OPSMITH_ISA", OPSMITH_ISA)
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(errors="replace").splitlines() if cpuinfo.exists() else []
    features = next((line.split() for line in lines if line.startswith(("flags", "Features"))), None)
    missing = [name for name in OPSMITH_FEATURES if features is not None and name not in features]
    if missing and isa == OPSMITH_ISA:
        what = f"the kernel was judged with -march={isa}: given a processor without {', '.join(missing)}"
        raise RuntimeError(f"{what}; try: OPSMITH_ISA=x86-64-v3, or another that this processor has")
    compiler = shutil.which(os.environ.get("CC", "gcc"))
    if compiler is None:
        raise RuntimeError(f"no compiler: given {os.environ.get('CC', 'gcc')}; expected gcc; try: apt install gcc")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "kernel.h").write_text(OPSMITH_HEADER)
        (place / "kernel.c").write_text(OPSMITH_KERNEL)
        flags = [f"-march={isa}" if flag == f"-march={OPSMITH_ISA}" else flag for flag in OPSMITH_COMPILE]
        source = ["-fPIC", "-include", "kernel.h", "-c", "kernel.c", "-o", "kernel.o"]
        for command in (
            [compiler, *flags, *source],
            [compiler, "kernel.o", "-o", "kernel.so", *OPSMITH_LINK],
        ):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"the kernel does not compile: {' '.join(command)}\\n{done.stderr}")
        library = ctypes.CDLL(str(place / "kernel.so"))
    library.FUNCTION.argtypes, library.FUNCTION.restype = OPSMITH_ARGUMENTS, None
    return library


OPSMITH_LIBRARY = _opsmith_build()


def _opsmith_call(*arguments, threads):
    if threads == 1:
        OPSMITH_LIBRARY.FUNCTION(*arguments)
        return
    before = OPSMITH_LIBRARY.omp_get_max_threads()
    OPSMITH_LIBRARY.omp_set_num_threads(threads)  # of this thread alone, as many as it was judged with
    try:
        OPSMITH_LIBRARY.FUNCTION(*arguments)
    finally:
        OPSMITH_LIBRARY.omp_set_num_threads(before)
'''.strip("\n").replace("FUNCTION", FUNCTION)


def write_torch_module(solved: Solved) -> TorchModule:
    """The file with `ModelNew` and the one with `Model`. Raises UsageError for what has no such form."""
    problem, options = read_native_task(solved.task.text)
    frame = make_frame(problem, solved.task.id)
    flags = options.choose_flags(find_judged_isa(solved.build))
    constants = _write_constants(make_signature(problem), solved.source, flags)
    host = (_IMPORTS, constants, f"\n{_BUILD}\n\n", f"{write_checks(CPU)}\n\n")
    head, forward = (
        write_head(solved, problem, "C", _NOTES),
        write_forward(problem, CPU, f"threads={options.threads}"),
    )
    return TorchModule(frame.name, frame.write_file(head, host, forward), frame.reference)


def _write_constants(signature: Signature, source: str, flags: BuildFlags) -> str:
    kinds = {"int64_t": "ctypes.c_int64", "double": "ctypes.c_double"}
    arguments = ", ".join(kinds.get(argument.c_type, "ctypes.c_void_p") for argument in signature.arguments)
    constants = {
        "KERNEL": write_literal(source, 0),
        "HEADER": write_literal(signature.header, 0),
        "ISA": repr(flags.isa.name),
        "FEATURES": repr(list_features(flags.isa.name)),
        "COMPILE": repr(list(flags.compile_flags)),
        "LINK": repr(list(flags.link_flags)),
        "ARGUMENTS": f"[{arguments}]",
    }
    return write_constants(constants)
