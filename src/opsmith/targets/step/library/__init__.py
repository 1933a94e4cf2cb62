"""The library: solved tasks as Python functions on tensors, in a package that needs torch alone.

`translation` finds out how a program is written in plain torch and whether that is equal; `statements` writes what it
computes, `module` the function around it, `package` all files. `proof` goes into the package's tests as it is.
"""
