"""Languages whose candidates are executed and answer in several encodings; tasks are those of the tiny target."""

import encodings.cp437  # noqa: F401  (zip files ask for it, and a candidate's process reads nothing)
import io
import json
import secrets
from functools import lru_cache
from typing import Any

import numpy as np
from tiny_target import TinyPython

from opsmith.records import Diagnostic, Stage
from opsmith.targets import Trial, TrialResult
from opsmith.targets.audit import Finding, State
from opsmith.targets.interpreted import Case


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


class Vectors(TinyPython):
    """Each number is a vector of two that differ; a program is given vectors."""

    rtol = 1e-6
    mark = b""  # what the target puts in front of its bytes

    def encode_inputs(self, trial: Trial) -> bytes:
        file = io.BytesIO()
        np.savez(file, **{name: np.array([value, 2.0 * value]) for name, value in trial.data.inputs.items()})
        return self.mark + file.getvalue()

    def execute_program(self, source: str, inputs: bytes) -> bytes:
        namespace: dict[str, Any] = {"np": np}
        exec(source, namespace)
        return self.mark + npy(namespace["solve"](**dict(np.load(io.BytesIO(inputs.removeprefix(self.mark))))))

    def compare_outputs(self, trial: Trial, outputs: bytes) -> TrialResult:
        wanted = np.array([1.0, 2.0]) * trial.data.expected
        try:
            value = np.load(io.BytesIO(outputs.removeprefix(self.mark)), allow_pickle=False)
        except (ValueError, EOFError):
            return TrialResult(Stage.RUN, (Diagnostic("OUT", trial.name, "bytes", "a vector"),))
        fits = (
            isinstance(value, np.ndarray) and value.shape == wanted.shape and np.allclose(value, wanted, rtol=self.rtol)
        )
        errors = () if fits else (Diagnostic("DATA", trial.name, str(value), str(wanted)),)
        return TrialResult(Stage.MATCH, errors, 0.0)


class Loose(Vectors):
    rtol = 0.5


class Opaque(Vectors):
    mark = b"\x00mine"


class Careless(TinyPython):
    """Takes whatever is JSON for right."""

    def compare_outputs(self, trial: Trial, outputs: bytes) -> TrialResult:
        json.loads(outputs)
        return TrialResult(Stage.MATCH, (), 0.0)


class Unseeded(TinyPython):
    """Draws its inputs anew in every process."""

    @lru_cache(maxsize=8)  # noqa: B019  (one instance, as long as the process)
    def list_trials(self, task: Any) -> list[Trial]:
        drawn = [(secrets.randbelow(10**6), secrets.randbelow(10**6)) for _ in range(3)]
        return [Trial(f"trial {at}", Case({"x": x, "y": y}, x + y)) for at, (x, y) in enumerate(drawn)]


class WithAudit(TinyPython):
    """Has a word of its own on inputs, for which it needs verdicts."""

    def audit_task(self, task: Any, source: str, judge: Any) -> Any:
        verdicts = [judge(task, f"def solve(x, y):\n    return {name}\n") for name in ("x", "y")]
        found = f"{[str(verdict.outcome) for verdict in verdicts]}"
        yield Finding("inputs", State.NOTE, "return x, return y", found)


VECTORS, LOOSE, OPAQUE, CARELESS, UNSEEDED, WITH_AUDIT = (
    Vectors(), Loose(), Opaque(), Careless(), Unseeded(), WithAudit(),
)  # fmt: skip
