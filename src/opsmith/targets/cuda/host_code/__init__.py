"""A right program taken away: its kernels with host code in C++ and Python, written from the launch plan."""
