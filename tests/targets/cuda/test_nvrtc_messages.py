"""What NVRTC says becomes findings with a line, what was written there, what was expected and what to try."""

import pytest

from opsmith.running.compiler import CompileRefusal
from opsmith.targets.cuda.messages import MOST, explain_refusal
from opsmith.targets.cuda.remarks import KernelResources, read_resources
from opsmith.targets.native.messages import LONGEST

SOURCE = """// launch k grid=(M) block=(32) args=(x, y)
#include <cuda_fp16.h>
__global__ void k(const float *x, float *y)
{
    flot z;
    x[0] = 1;
}
"""


def explain(messages: str, limit: str = "") -> list[str]:
    findings = explain_refusal(CompileRefusal(messages, limit), SOURCE, {"k": 1, "lost": 1})
    return list(map(str, findings))


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (
            'kernel.cu(5): error: identifier "flot" is undefined\n      flot z;\n      ^\n\n1 error detected in the compilation of "kernel.cu".\n',
            'COMPILE line 5, column 5: at flot: given identifier "flot" is undefined; expected a name that is declared above its use',
        ),
        ('kernel.cu(5): error: identifier "__half" is undefined', "try: #include <cuda_fp16.h>"),
        ('kernel.cu(5): error: identifier "__float2half_rn" is undefined', "try: #include <cuda_fp16.h>"),
        ('kernel.cu(5): error: identifier "half2" is undefined', "try: #include <cuda_fp16.h>"),
        ('kernel.cu(5): error: identifier "half_width" is undefined', "try: declare half_width"),
        ('kernel.cu(5): error: identifier "__nv_bfloat16" is undefined', "try: #include <cuda_bf16.h>"),
        ('kernel.cu(5): error: identifier "__bfloat162float" is undefined', "try: #include <cuda_bf16.h>"),
        ("kernel.cu(6): error: expression must be a modifiable lvalue\n      x[0] = 1;\n      ^\n", "inputs are const"),
        (
            "kernel.cu(6): error #20014-D: calling a __host__ function from a __global__ function",
            "write __device__ before",
        ),
        ('kernel.cu(7): error: expected a ";"\n  }\n  ^\n', 'expected ";"; try: close what is open'),
        (
            '/opt/nvidia/cu13/include/cuda_fp16.hpp(210): error: no instance of overloaded function "f" matches the argument list\n          detected during instantiation of "T g(T)" at line 6\n',
            "COMPILE line 6: on this line: given no instance",
        ),
        ("/opt/nvidia/cu13/include/cuda_fp16.hpp(210): error: something\n", "a header that the program includes"),
        (
            "ptxas error   : Entry function '_Z1kPKfPf' uses too much shared data (0x40000 bytes, 0xc000 max)\n",
            "line 3: ptxas: given kernel k with 262144 bytes of static shared memory; expected at most 49152",
        ),
        (
            '__nv_name_map(3): error: identifier "lost" is undefined\n  #pragma nv_mangled_name lost\n',
            "COMPILE line 1: launch lost: given no kernel lost",
        ),
        ("", "a program on which it broke down"),
    ],
)
def test_a_message_is_a_finding(messages, words):
    (finding,) = explain(messages)
    assert words in finding
    assert "/opt/" not in finding


def test_warnings_are_left_out():
    warning = 'kernel.cu(5): warning #177-D: variable "u" was declared but never referenced\n      flot z;\n      ^\n\n'
    (finding,) = explain(warning + "kernel.cu(6): error: expected an expression\n      x[0] = 1;\n      ^\n")
    assert "never referenced" not in finding
    assert "line 6" in finding


def test_a_limit_is_named_and_many_errors_are_few():
    assert "at most 10 s of processor time" in explain("", "10 s of processor time")[0]
    assert len(explain("".join(f'kernel.cu(6): error: identifier "a{n}" is undefined\n' for n in range(99)))) == MOST
    assert len(explain(f"kernel.cu(6): error: {'x' * 9999}")[0]) < 2 * LONGEST + 200


def test_resources_are_read_by_kernel():
    log = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'h' for 'sm_90'
ptxas info    : Function properties for h
ptxas         .     8000 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 37 registers, used 0 barriers, 8000 bytes cumulative stack size
ptxas info    : Compiling entry function '_Z1kPKfPfi' for 'sm_90'
ptxas info    : Function properties for _Z1kPKfPfi
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 512 bytes smem
ptxas info    : Compile time = 1.969 ms
"""
    assert read_resources(log) == {
        "h": KernelResources(37, 8000, 12, 16, 0, 0),
        "_Z1kPKfPfi": KernelResources(10, 0, 0, 0, 512, 1),
    }
