"""Is this candidate right? `verifier`: a pure function; `pool`: the same in worker processes.

The package is callable, because `opsmith.verify` names both this package and the public function
`opsmith.verify(task, source)`: Python sets the former over the latter when a module in here is first imported.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opsmith.records import Task, Verdict


class _CallablePackage(ModuleType):
    def __call__(self, task: "Task", source: str) -> "Verdict":
        from opsmith import api  # noqa: PLC0415  (the public function stands above this layer)

        return api.verify(task, source)


sys.modules[__name__].__class__ = _CallablePackage
