/* What a runtime of CUDA includes of its own accord: nothing that a kernel needs. */
#pragma once
