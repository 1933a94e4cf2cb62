"""The library of a compiled language: solved tasks as PyTorch operators, in a package that needs torch and a compiler.

`operator`, `sizes`, `shared_object` and `proof` go into the package as they are; `module` writes one operator's module.
"""
