"""Opsmith: language models write the operator library of a new accelerator; every program is tested against PyTorch.

    import opsmith
    task = opsmith.load_task("bmm_0")                  # an id of a bundled task, or a YAML file
    verdict = opsmith.verify(task, "return E0")        # .passed, .stage, .message
    verdict = opsmith.verify_reply(task, model_reply)  # the program is looked for in the text
    result = opsmith.improve([task], "embedded", opsmith.Settings(samples=8))

Everything is imported when it is first used: `import opsmith` alone loads neither torch nor pydantic nor a model SDK.
"""

from importlib import import_module

TYPE_CHECKING = False  # the module `typing` takes longer to import than all that a process of commands needs
if TYPE_CHECKING:
    from opsmith.api import improve, verify, verify_many, verify_reply
    from opsmith.records import Boundary, Diagnostic, Outcome, Stage, Task, Verdict
    from opsmith.settings import Settings
    from opsmith.suites import load_task

__version__ = "0.1.0"

_HOMES = {
    **dict.fromkeys(["improve", "verify", "verify_many", "verify_reply"], "opsmith.api"),
    "load_task": "opsmith.suites",
    **dict.fromkeys(["Boundary", "Diagnostic", "Outcome", "Stage", "Task", "Verdict"], "opsmith.records"),
    "Settings": "opsmith.settings",
}

__all__ = [
    "Boundary",
    "Diagnostic",
    "Outcome",
    "Settings",
    "Stage",
    "Task",
    "Verdict",
    "__version__",
    "improve",
    "load_task",
    "verify",
    "verify_many",
    "verify_reply",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'opsmith' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
