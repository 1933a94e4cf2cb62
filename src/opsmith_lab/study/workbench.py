"""Programs judged and timed for studies, each once: what was found is kept, and found again after any end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from opsmith.devices.describe import Device, describe_device
from opsmith.devices.peaks import load_peaks
from opsmith.errors import OpsmithError, UsageError
from opsmith.judging.pool import Pool
from opsmith.judging.verifier import canonical_source
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.measure import PROTOCOL, SpeedRequest, TimedProgram, measure_program
from opsmith.measuring.record import PLAIN, MeasuringGrade
from opsmith.records import Outcome, Task, content_hash
from opsmith.targets import get_target
from opsmith.targets.capabilities import name_verifier
from opsmith.targets.protocols import Equipped, Parametrised, Remarked, Timed
from opsmith_lab.evaluation.measure import MeanEstimate
from opsmith_lab.study.recording import KeptValues

LEASE_S = 900.0  # that a measurement waits for the processor
_BATCH = 16  # programs that are judged between two lines of the file


@dataclass(frozen=True)
class ProgramVerdict:
    """What a verdict comes to. Equal texts but for names and layout share one."""

    source: str  # the first of these texts
    stage: str  # where it was refused; "": it is right
    message: str = ""

    @property
    def is_right(self) -> bool:
        return not self.stage


@dataclass(frozen=True)
class PlainRatio:
    """Of a right program at one size: the plain program's time by its own."""

    ratio: float | None  # None: `reason` says why
    low: float | None = None
    high: float | None = None
    claim: str = ""
    reason: str = ""
    is_left_out: bool = False  # nobody asked for it

    @property
    def estimate(self) -> MeanEstimate | None:
        return None if self.ratio is None else MeanEstimate(self.ratio, self.low, self.high, 1, 1)


@dataclass
class Workbench:
    """Where it is done. A context manager."""

    folder: Path
    on_progress: Callable[[str], None]
    grades: frozenset[MeasuringGrade] = frozenset(MeasuringGrade)  # that are measured now; of others what was kept
    device: Device = field(default_factory=describe_device)

    def __post_init__(self) -> None:
        self._kept = KeptValues(self.folder / "programs.jsonl")
        self._pool, self._room = Pool(), TimingRoom(lease_seconds=LEASE_S)
        self._canonical: dict[tuple[str, str], str] = {}

    def __enter__(self) -> Workbench:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._pool.close()
        self._room.__exit__(kind, value, tb)

    def refuse_unready(self, language: str) -> None:
        """Raises UsageError for a language whose programs cannot be judged here, or whose parameters nobody reads."""
        target = get_target(language)
        if lack := target.explain_lack() if isinstance(target, Equipped) else "":
            raise UsageError(f"--language {language}: {lack}")
        if not isinstance(target, Parametrised):
            raise UsageError(f"--language {language}: nothing reads tiles and blocks from its programs")

    def judge_programs(self, task: Task, sources: Sequence[str]) -> dict[str, ProgramVerdict]:
        """By text. Raises VerifierError where a verdict could not be made."""
        verifier = name_verifier(get_target(task.target))
        forms = {source: self.write_form(task, source) for source in dict.fromkeys(sources)}
        keys = {form: content_hash("verdict", task.digest, verifier, form) for form in forms.values()}
        first = {form: source for source, form in reversed(forms.items())}
        unjudged = [source for form, source in reversed(first.items()) if keys[form] not in self._kept]
        for start in range(0, len(unjudged), _BATCH):
            batch = unjudged[start : start + _BATCH]
            for source, verdict in zip(batch, self._pool.verify_all(task, batch), strict=True):
                if verdict.outcome is Outcome.UNJUDGED:
                    raise OpsmithError(f"{task.id} in {task.target}: a program could not be judged: {verdict.message}")
                stage = "" if verdict.passed else verdict.stage.name
                self._kept.keep(keys[forms[source]], {"source": source, "stage": stage, "message": verdict.message})
            self.on_progress(f"{task.target} {task.id}: {start + len(batch)} of {len(unjudged)} programs judged")
        return {source: ProgramVerdict(**self._kept[keys[form]]) for source, form in forms.items()}

    def write_form(self, task: Task, source: str) -> str:
        """A text that is equal for programs that differ in names and layout only."""
        key = task.target, source
        if key not in self._canonical:
            self._canonical[key] = canonical_source(task, source)
        return self._canonical[key]

    def time_program(
        self, task: Task, source: str, sizes: Mapping[str, int], grade: MeasuringGrade, seed: int = 0
    ) -> PlainRatio:
        """A right program beside the plain one. Raises BusyError where somebody else has the processor for too long."""
        if not isinstance(get_target(task.target), Timed):
            return PlainRatio(None, reason="programs of this language are not timed here")
        if self.write_form(task, source) == self.write_form(task, task.impl or ""):
            return PlainRatio(1.0, 1.0, 1.0, reason="the plain program itself")
        place = (task.digest, task.impl or "", str(sorted(sizes.items())), self.write_form(task, source))
        names = ("time", PROTOCOL, self.device.digest, grade.value, str(seed), *place)
        if grade not in self.grades and content_hash(*names) not in self._kept:
            return PlainRatio(None, reason=f"not timed: no {grade.value} was asked for", is_left_out=True)
        return PlainRatio(**self._keep(names, lambda: self._measure(task, source, sizes, grade, seed)))

    def describe_build(self, task: Task, source: str) -> str:
        """What the compiler says of a right program's resources; "": nothing."""
        target = get_target(task.target)
        if not isinstance(target, Remarked):
            return ""
        verifier, form = name_verifier(target), self.write_form(task, source)
        text: str = self._keep(("build", verifier, task.digest, form), lambda: target.describe_build(task, source))
        return text

    def _keep(self, names: Sequence[str], make: Callable[[], Any]) -> Any:
        key = content_hash(*names)
        if key not in self._kept:
            self._kept.keep(key, make())
        return self._kept[key]

    def _measure(
        self, task: Task, source: str, sizes: Mapping[str, int], grade: MeasuringGrade, seed: int
    ) -> dict[str, Any]:
        sides = TimedProgram(source, "program"), TimedProgram(task.impl or "", PLAIN)
        peaks = load_peaks(self.device.digest)
        request = SpeedRequest(task, *sides, {"study": dict(sizes)}, grade, self.device, peaks, seed)
        (report,) = measure_program(self._room, self._pool.verify, request)
        measurement = report.measurement
        if measurement.ratio is None:
            return {"ratio": None, "reason": measurement.reason}
        precise, claim = measurement.ratio.precise, measurement.ratio.claim
        return {"ratio": precise.value, "low": precise.low, "high": precise.high, "claim": claim.value if claim else ""}
