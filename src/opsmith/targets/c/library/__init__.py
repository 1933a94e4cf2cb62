"""The library of C programs: sources, a header, a build with gcc, and PyTorch operators that call the shared object.

`header` writes what C sees, `building` what builds it, `package` all files.
"""
