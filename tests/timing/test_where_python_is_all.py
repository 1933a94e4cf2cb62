"""What goes to other machines with a pack: it imports where there is nothing of ours, of Linux or of a newer Python."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from opsmith.remote.packing import Pack
from opsmith.targets.gpu.nvidia.carrying import CONVENTION as GPU_CALLS
from opsmith.targets.native.programs import CONVENTION as NATIVE_CALLS

MODULES = [GPU_CALLS.module, NATIVE_CALLS.module]
CODE = Pack({"programs": [{"module": module} for module in MODULES]}).list_code()
WITHOUT_LINUX = """
import ctypes, os, select, signal, sys
sys.path.insert(0, {folder!r})
for module, names in (
    (os, ["sched_getaffinity", "memfd_create", "pidfd_open", "posix_fadvise"]),
    (select, ["epoll", "poll"]),
    (signal, ["pthread_sigmask", "SIGRTMIN"]),
):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
sys.modules.update(dict.fromkeys(["resource", "fcntl", "numpy", "torch"]))
ctypes.CDLL = None  # nothing is asked of a library until something is measured
import runner
from importlib import import_module
assert all(import_module(name).__file__.startswith({folder!r}) for name in {modules!r})
assert runner.count_processors() > 0
"""


def test_all_of_it_imports_without_linux_and_without_the_package(tmp_path: Path) -> None:
    for name, data in CODE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    code = WITHOUT_LINUX.format(folder=str(tmp_path), modules=[*MODULES, "opsmith.timing.engine"])
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", [name for name in CODE if not name.endswith("__init__.py")])
def test_its_texts_are_of_an_old_python(name: str) -> None:
    tree = ast.parse(CODE[name], feature_version=(3, 8))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {node.func.id: {word.arg for word in node.keywords} for node in calls if isinstance(node.func, ast.Name)}
    assert "strict" not in names.get("zip", set())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert not imported & {"StrEnum", "cache", "pairwise", "override", "Self"}
