"""A kernel as a module of torch in one file: `host` (checks, allocation, the call), `foreign` (the code of the module
that it stands for), `counterpart` (a module that computes the same in torch), `dims` (sizes in Python)."""
