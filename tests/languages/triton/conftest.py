"""These tests run where Triton is installed: in the environment of `make triton`."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("triton") else ["test_*.py"]
