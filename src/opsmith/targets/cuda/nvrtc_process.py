"""The process of one compile by NVRTC: `python -I -S nvrtc_process.py ORDER`, where ORDER is JSON, in a folder that
holds the source and takes the results. Nothing of the package is imported: it runs confined, as a command.

It exits with 0 where the compiler answered, whatever it said (ANSWER); otherwise the compiler itself failed.
"""

import ctypes
import json
import sys

ANSWER, CUBIN, SOURCE = "answer.json", "kernel.cubin", "kernel.cu"
SUCCESS, REFUSED = 0, 6  # of nvrtcResult; the latter is NVRTC_ERROR_COMPILATION


def main(order: dict) -> None:  # type: ignore[type-arg]
    ctypes.CDLL(order["builtins"])
    nvrtc = ctypes.CDLL(order["compiler"])
    with open(SOURCE, "rb") as file:
        source = file.read()
    program = ctypes.c_void_p()
    require_success(nvrtc, nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, SOURCE.encode(), 0, None, None))
    for name in order["kernels"]:
        require_success(nvrtc, nvrtc.nvrtcAddNameExpression(program, name.encode()))
    options = [option.encode() for option in order["options"]]
    code = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    if code == SUCCESS:
        with open(CUBIN, "wb") as file:
            file.write(read_bytes(nvrtc, program, "CUBIN"))
    elif code != REFUSED:
        require_success(nvrtc, code)
    names = {name: read_symbol(nvrtc, program, name) for name in order["kernels"]} if code == SUCCESS else {}
    log = read_bytes(nvrtc, program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
    with open(ANSWER, "w", encoding="utf-8") as file:
        json.dump({"code": code, "log": log, "symbols": names}, file)


def read_bytes(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, name: str) -> bytes:
    size = ctypes.c_size_t()
    require_success(nvrtc, nvrtc[f"nvrtcGet{name}Size"](program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    require_success(nvrtc, nvrtc[f"nvrtcGet{name}"](program, buffer))
    return buffer.raw


def read_symbol(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, name: str) -> str:
    """What a kernel is called in the cubin."""
    symbol = ctypes.c_char_p()
    require_success(nvrtc, nvrtc.nvrtcGetLoweredName(program, name.encode(), ctypes.byref(symbol)))
    return (symbol.value or b"").decode()


def require_success(nvrtc: ctypes.CDLL, code: int) -> None:
    """Ends the process with a word on what went wrong."""
    if code != SUCCESS:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        sys.exit(f"nvrtc: {nvrtc.nvrtcGetErrorString(code).decode(errors='replace')}")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
