"""How a GPU language is asked for problems: arrays and numbers by the names that a launch plan gives them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from opsmith.errors import UnaskableError
from opsmith.problems.dtypes import DTYPES
from opsmith.records import Task
from opsmith.targets.gpu.options import GpuOptions
from opsmith.targets.native.adaptation import NativeTasks
from opsmith.targets.native.task import check_option_names


class GpuTasks(NativeTasks):
    """The part of a GPU language that makes tasks. No prototype is shown: a plan passes arrays and numbers by name."""

    write_function = None
    options: type[GpuOptions] = GpuOptions
    dtypes: Collection[str] = DTYPES  # that arrays may have; a problem with others cannot be asked for

    def read_options(self, words: Mapping[str, Any]) -> GpuOptions:
        check_option_names(words, self.options)
        return self.options(**{name: str(word) for name, word in words.items()})

    def find_options(self, task: Task) -> GpuOptions:
        options = super().find_options(task)
        assert isinstance(options, GpuOptions)
        return options

    def _show_task(self, task: Task) -> Task:
        """Raises UnaskableError for a problem of types that the language lacks."""
        problem = self.find_problem(task)
        dtypes = dict.fromkeys(type_.dtype for type_ in problem.types)
        lacking = [dtype for dtype in dtypes if dtype not in self.dtypes]
        if lacking:
            expected = f"expected arrays of {', '.join(self.dtypes)}; try: another --target"
            name = task.path or task.id
            raise UnaskableError(f"{name}: given {', '.join(lacking)} for the target {self.name}; {expected}")
        return super()._show_task(task)
