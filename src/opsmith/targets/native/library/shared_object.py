"""The shared object of a package of operators: found, checked against this processor, and loaded when one is called."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from opsmith.targets.native.flags import choose_isa, find_missing_features, read_features
from opsmith.targets.native.library.operator import ProgramCall
from opsmith.targets.operator_error import OperatorError

ISA = "isa"  # what the symbol that says the instruction sets ends with


class SharedObject:
    """That of one package. Its symbols begin with the package's name."""

    devices = ("cpu",)

    def __init__(self, package: str, path: Path) -> None:
        self.package, self.path = package, path
        self._functions: dict[str, Callable[..., None]] = {}

    def explain_lack(self) -> str:
        return ""

    def run_program(self, call: ProgramCall) -> None:
        """See `Programs`."""
        function = self._functions.get(call.name) or self._find_function(call)
        arguments = [*(tensor.data_ptr() for tensor in (*call.tensors, *call.results)), *call.dims, *call.scalars]
        if call.threads == 1:
            function(*arguments)
            return
        openmp = self.handle  # which is linked with it
        before = openmp.omp_get_max_threads()
        openmp.omp_set_num_threads(call.threads)  # of this thread alone
        try:
            function(*arguments)
        finally:
            openmp.omp_set_num_threads(before)

    def _find_function(self, call: ProgramCall) -> Callable[..., None]:
        """A function of the library as ctypes calls it. Raises OperatorError where it cannot be loaded."""
        function: Any = getattr(self.handle, f"{self.package}_{call.name}")
        declared = call.problem.scalars.values()
        numbers = [ctypes.c_int64 if isinstance(value, int) else ctypes.c_double for value in declared]
        pointers = [ctypes.c_void_p] * (len(call.tensors) + len(call.results))
        function.argtypes, function.restype = [*pointers, *[ctypes.c_int64] * len(call.dims), *numbers], None
        self._functions[call.name] = function
        return function  # type: ignore[no-any-return]

    @cached_property
    def handle(self) -> ctypes.CDLL:
        if not self.path.exists():
            what = f"{self.package}: {self.path.name} is not there: given {self.path.parent}, where it was not built"
            raise OperatorError(f"{what}; expected an installed package; try: pip install ., or make, in its folder")
        try:
            handle = ctypes.CDLL(str(self.path))
        except OSError as error:
            what = f"{self.package}: {self.path.name} cannot be loaded: {error}"
            raise OperatorError(
                f"{what}; expected one that was built here; try: pip install --force-reinstall ."
            ) from None
        self._check_processor(handle)
        return handle

    def _check_processor(self, handle: ctypes.CDLL) -> None:
        """Instructions that this processor lacks would end the process."""
        isa_text = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(handle, f"{self.package}_{ISA}"))).decode()
        features = read_features()
        missing = sorted({name for isa in isa_text.split() for name in find_missing_features(isa, features)})
        if features and missing:
            what = (
                f"{self.package}: built for {isa_text}: given a processor without {', '.join(missing)}; expected them"
            )
            own = choose_isa(platform.machine(), features).name
            raise OperatorError(f"{what}; try: ISA={own} pip install --force-reinstall .")
