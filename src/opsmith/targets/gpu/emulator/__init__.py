"""Runs kernels without a GPU: compiled as C++ over a runtime of ours that sees every access to memory."""
