"""The library: solved tasks as Python functions on tensors, in a package that needs torch alone.

`operator`, `sizes` and `proof` go into the package as they are, beside the checker and the simulator;
`module` writes one operator's module, `package` all files.
"""
