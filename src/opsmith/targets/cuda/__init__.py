"""CUDA: kernels with a launch plan, compiled by NVRTC for a stated architecture, and judged by emulation."""
