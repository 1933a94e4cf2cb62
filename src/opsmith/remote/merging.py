"""What comes back from another machine: read with suspicion, outputs compared here, and said as local figures are.

Times are that machine's word: whoever controls it can write any. What is checked is that they belong to what was
packed, that the inputs were those that follow from its seeds, and that outputs of timed calls are right.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import stat
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from opsmith.devices.describe import MachineFacts, describe_device
from opsmith.devices.peaks import load_peaks
from opsmith.errors import OpsmithError
from opsmith.measuring.grain import describe_repeats
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.measure import TRUSTED_ERROR, SpeedRequest, estimate_ratio, say_ratio, withhold_figures
from opsmith.measuring.pairs import estimate_median
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement, SpeedReport
from opsmith.measuring.roofline import bound_time, measure_share
from opsmith.measuring.slots import NumpyMixer
from opsmith.measuring.timing import TimingError
from opsmith.measuring.timing_data import DataWorker
from opsmith.outside import MAX_BYTES, read_text
from opsmith.records import printable
from opsmith.remote.packing import Pack, PackedSet
from opsmith.targets.programs import CallConvention
from opsmith.timing.carried import FORMAT, RESULTS
from opsmith.timing.engine import PairTimes
from opsmith.timing.inputs import InputMixer, Recipe, SlotLayout, draw_noises, expand_draw, hash_arrays

UNREACHED = "unreached"  # the device of what was not measured
MOST_TIMES, MOST_CHECKS = 10_000, 400
_LONGEST_REASON = 2000  # characters
_ZLIB_HEAD = 1024  # bytes that compressing may add
_ROW_BYTES, _FIGURE_BYTES, _CHECK_BYTES, _ARRAY_BYTES = 1 << 14, 64, 512, 128  # of text, at most: a row without its
# times and checks, a time, a check without its arrays, an array of a check
_SAYINGS = {
    "artefacts {}": "they are of other programs, or of another build",
    "shape sets {}": "the programs are the same, the sizes are not",
    "{} processes": "programs and sizes are the same, the grade is not",
}
_MOST_ERROR, _MOST_NS = 1e6, 1e15
_LEAST_NS = 1e-4  # of a call: a turn of the most calls takes one at least


class ResultsError(OpsmithError):
    """RemoteResults that are none of what was packed, or that somebody changed."""

    exit_code = 2


@dataclass(frozen=True)
class RemoteDevice:
    """What it was measured on, as measurements name it."""

    digest: str
    name: str


@dataclass(frozen=True)
class RemoteResults:
    """What a runner wrote: the machine, rows by key, and the folder of its outputs."""

    machine: Mapping[str, Any]
    rows: Mapping[str, Mapping[str, Any]]
    outputs: Path

    def read_output(self, digest: object, size: int) -> bytes:
        """Raises ResultsError unless it is there as it was written."""
        if not isinstance(digest, str) or len(digest) != 64 or not digest.isalnum():
            raise ResultsError(f"an output that is called {str(digest)[:80]!r}; expected a sha256")
        try:
            packed = _read_file(self.outputs / digest, size)
            reader = zlib.decompressobj()
            data = reader.decompress(packed, size + 1)
        except (OSError, zlib.error) as error:
            raise ResultsError(f"output {digest[:12]}: {error}; try: bring the folder results back whole") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise ResultsError(f"output {digest[:12]}: other bytes than its name says: it was changed or cut off")
        return data


def _read_file(path: Path, size: int) -> bytes:
    """A compressed output: no device, no pipe, and nothing that is larger than it can be. Raises OSError."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > size + size // 100 + _ZLIB_HEAD:
            raise OSError("no regular file, or larger than a compressed output can be")
        return file.read()


def read_results(path: Path, pack: Pack) -> RemoteResults:
    """Those of a file `results.json`, or of the folder that it lies in. Raises ResultsError, and TaskError for a file
    that is larger than what the pack asks for can be."""
    file = path / RESULTS if path.is_dir() else path
    try:
        data = json.loads(read_text(file, _bound_results(pack)))
        version, machine, rows = data["format"], data["machine"], list(data["results"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ResultsError(f"{file}: no results ({error!r}); expected what runner.py wrote, whole") from None
    if version != FORMAT:
        raise ResultsError(f"{file}: given format {version!r}; expected {FORMAT}; try: pack and measure it anew")
    if not isinstance(machine, dict) or not all(isinstance(row, dict) for row in rows):
        raise ResultsError(f"{file}: no results; expected what runner.py wrote")
    return RemoteResults(machine, {str(row.get("key")): row for row in rows}, file.parent / "outputs")


def _bound_results(pack: Pack) -> int:
    """The bytes of a file of all that was asked for, at most."""
    asked = pack.manifest["protocol"]
    processes = 2 * max([program["processes"] for program in pack.manifest["programs"]], default=0)  # by both clocks
    figures, checks = processes * 2 * (asked["pairs"] + asked["warm_ups"]), processes * asked["checks"]
    arrays = sum(len(packed.entry["inputs"]) + len(packed.entry["outputs"]) for packed in pack.sets.values())
    of_set = _ROW_BYTES + figures * _FIGURE_BYTES + checks * _CHECK_BYTES
    return int(MAX_BYTES + len(pack.sets) * of_set + arrays * checks * _ARRAY_BYTES)


def merge_results(room: TimingRoom, pack: Pack, results: RemoteResults) -> Iterator[tuple[SpeedRequest, SpeedReport]]:
    """The report of each shape set of each request, with the request.

    Raises ResultsError where the results are of other programs altogether.
    """
    if pack.sets and results.rows and not any(key in results.rows for key in pack.sets):
        raise ResultsError(f"{_tell_difference(pack, results)}; try: the options that the programs were packed with")
    for request, name, reason, flags in pack.refused:
        yield request, SpeedReport(withhold_figures(request, name, reason, flags), None)
    for key, packed in pack.sets.items():
        yield packed.request, _merge_set(room, packed, results, results.rows.get(key))


def _tell_difference(pack: Pack, results: RemoteResults) -> str:
    """What results that have no key of the pack differ in: the first fact that none of them shares with it."""
    rows, sets = results.rows.values(), pack.sets.values()
    facts = {
        "artefacts {}": ([str(row.get("artefact"))[:12] for row in rows], [packed.artefact[:12] for packed in sets]),
        "shape sets {}": ([str(row.get("name")) for row in rows], [_name_set(packed) for packed in sets]),
        "{} processes": ([str(_count_rows(row)) for row in rows], [str(packed.protocol.processes) for packed in sets]),
    }
    for form, (measured, expected) in facts.items():
        if not set(measured) & set(expected):
            actual, wanted = (form.format(", ".join(sorted(set(texts))[:3])) for texts in (measured, expected))
            return f"results of {printable(actual)[:_LONGEST_REASON]}; expected {wanted}: {_SAYINGS[form]}"
    names = ", ".join(sorted(map(_name_set, sets))[:3])
    return f"results of {names} beside another partner or with other inputs; expected those of the same options"


def _name_set(packed: PackedSet) -> str:
    """As the runner names its row."""
    return f"{packed.request.task.id} at {packed.name}"


def _count_rows(row: Mapping[str, Any]) -> int:
    return len(row["pairs"]) if isinstance(row.get("pairs"), list) else 0


def _merge_set(
    room: TimingRoom, packed: PackedSet, results: RemoteResults, row: Mapping[str, Any] | None
) -> SpeedReport:
    device = RemoteDevice(UNREACHED, "")
    try:
        if row is None:
            raise TimingError("it is not among the results; try: the same command once more")
        times = _read_times(packed, row)  # before the device: where it fails there may be none
        device = describe_remote(packed.convention, results.machine)
        with room.asking_worker(packed.request.task, packed.request.task.target) as worker:
            _check_outputs(worker, packed, results, row)
            measurement = _say_figures(packed, device, times)
            return SpeedReport(measurement, _find_share(worker, packed, measurement))
    except (TimingError, ResultsError) as error:
        if device.digest == UNREACHED:
            with contextlib.suppress(ResultsError):
                device = describe_remote(packed.convention, results.machine)
        return SpeedReport(_withhold(packed, device, str(error)), None)


def _withhold(packed: PackedSet, device: RemoteDevice, reason: str) -> SpeedMeasurement:
    words = printable(reason)[:_LONGEST_REASON]
    measurement = withhold_figures(packed.request, packed.name, words, packed.toolchain)
    protocol = packed.convention.protocol
    return replace(measurement, device=device.digest, device_name=device.name, protocol=protocol)


def describe_remote(convention: CallConvention, machine: Mapping[str, Any]) -> RemoteDevice:
    """Raises ResultsError for a description that is none."""
    try:
        if convention.describe_device is not None:
            return RemoteDevice(*convention.describe_device(machine))
        return _describe_processor(machine)
    except (LookupError, TypeError, ValueError, AttributeError, OSError, RecursionError, ArithmeticError) as error:
        raise ResultsError(f"results: no description of the machine ({repr(error)[:200]})") from None


def _describe_processor(machine: Mapping[str, Any]) -> RemoteDevice:
    with tempfile.TemporaryDirectory(prefix="opsmith-") as folder:
        for name, text in machine["texts"].items():
            path = Path(folder, *(part for part in str(name).split("/") if part not in ("", ".", "..")))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(text), encoding="utf-8")
        facts = MachineFacts(str(machine["machine"]), machine["cores"], machine["usable_cores"], None)
        device = describe_device(Path(folder), facts)
    return RemoteDevice(device.digest, printable(device.name or "")[:80])


@dataclass(frozen=True)
class _Times:
    pairs: list[PairTimes]
    apart: list[PairTimes]


def _read_times(packed: PackedSet, row: Mapping[str, Any]) -> _Times:
    if row.get("artefact") != packed.artefact:
        artefact = printable(str(row.get("artefact")))[:64]
        raise ResultsError(f"results of artefact {artefact}; expected {packed.artefact}, whose key they have")
    if "error" in row:
        raise TimingError(str(row["error"]))
    times = _Times(_read_processes(row.get("pairs")), _read_processes(row.get("apart")))
    is_trusted = packed.request.grade is MeasuringGrade.FULL and packed.request.partner is not None
    if not times.pairs or (packed.convention.has_outside_clock and is_trusted and not times.apart):
        raise ResultsError("results without times; expected those of every process")
    _check_counts(packed, times)
    return times


def _check_counts(packed: PackedSet, times: _Times) -> None:
    """As many pairs and processes as were asked for: fewer say less than their grade does. Raises ResultsError."""
    most_calls = None if any(array.is_fresh for array in packed.inputs) else packed.entry["draws"]
    processes, pairs = packed.protocol.processes, packed.protocol.fit_pairs(1.0, most_calls).pairs
    for rows in filter(None, (times.pairs, times.apart)):
        if len(rows) != processes or any(len(row.program) != pairs for row in rows):
            counts = sorted({len(row.program) for row in rows})
            description = f"{len(rows)} processes of {', '.join(map(str, counts))} pairs"
            raise ResultsError(
                f"results of {description}; expected {processes} of {pairs}: they were changed or cut off"
            )


def _read_processes(rows: object) -> list[PairTimes]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ResultsError("results without lists of times")
    processes = [
        PairTimes(
            _read_side(row, "program"),
            _read_side(row, "partner"),
            error=_read_figure(row, "error", _MOST_ERROR),
            filling_ns=_read_figure(row, "filling_ns", _MOST_NS),
        )
        for row in rows
    ]
    if any(len(times.program) != len(times.partner) for times in processes):
        raise ResultsError("times that are no pairs")
    return processes


def _read_side(row: Mapping[str, Any], side: str) -> tuple[float, ...]:
    figures = row.get(side)
    is_sound = isinstance(figures, list) and 0 < len(figures) <= MOST_TIMES
    if not is_sound or not all(
        type(figure) in (int, float) and _LEAST_NS <= figure < _MOST_NS for figure in figures or ()
    ):
        raise ResultsError(f"times of the {side} that are none: expected positive numbers of nanoseconds")
    return tuple(map(float, figures or ()))


def _read_figure(row: Mapping[str, Any], name: str, limit: float) -> float:
    """What beside times is said of a process: the `error` by which the outside clock's own price makes a ratio less
    certain, and `filling_ns`."""
    figure = row.get(name, 0.0)
    if type(figure) not in (int, float) or not 0 <= figure < limit:
        raise ResultsError(f"times with {name} {str(figure)[:40]}; expected a number from 0 to {limit:g}")
    return float(figure)


# -- outputs


def _check_outputs(worker: DataWorker, packed: PackedSet, results: RemoteResults, row: Mapping[str, Any]) -> None:
    """Raises WrongOutputError where one is wrong, ResultsError where nothing can be compared."""
    checks, seed = row.get("checks"), row.get("seed")
    if not isinstance(checks, list) or not 0 < len(checks) <= MOST_CHECKS or type(seed) is not int:
        raise ResultsError("results without outputs of timed calls; expected some, to be compared")
    for check in checks:
        inputs = _mix_inputs(worker, packed, seed, check)
        digests = check.get("outputs")
        if not isinstance(digests, list) or len(digests) != len(packed.layout.outputs):
            raise ResultsError("an output that is missing")
        outputs = [results.read_output(*pair) for pair in zip(digests, packed.layout.outputs, strict=True)]
        if [len(output) for output in outputs] != list(packed.layout.outputs):
            raise ResultsError("outputs of another size than the program's")
        worker.check_arrays(packed.request.shape_sets[packed.name], packed.layout, inputs, outputs)


def _mix_inputs(worker: DataWorker, packed: PackedSet, seed: int, check: Any) -> list[bytes]:
    """Those of a call as the runner made them. Raises ResultsError where its own digest says others."""
    recipe = _read_recipe(packed, check)
    draws = [
        _expand_draw(packed.inputs, packed.read_file, seed, number) if number in (recipe.first, recipe.second) else []
        for number in range(packed.entry["draws"])
    ]
    layout = SlotLayout(packed.layout)
    if packed.convention.is_disturbed:
        mixer: InputMixer = NumpyMixer(layout, packed.inputs, draws, _draw_noises(packed.inputs, seed))
    else:
        mixer = InputMixer(layout, packed.inputs, draws)
    inputs = mixer.mix_inputs(recipe)
    if hash_arrays(inputs) != check.get("inputs"):
        raise ResultsError("inputs that are not those of the runner's seeds: its results were changed")
    return inputs


_expand_draw, _draw_noises = lru_cache(maxsize=8)(expand_draw), lru_cache(maxsize=2)(draw_noises)


def _read_recipe(packed: PackedSet, check: Any) -> Recipe:
    try:
        first, second, novelty = (int(check["recipe"][name]) for name in ("first", "second", "novelty"))
        cuts = tuple(int(cut) for cut in check["recipe"]["cuts"])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ResultsError("a call without a recipe of its inputs") from None
    draws = range(packed.entry["draws"])
    is_sound = first in draws and second in draws and 0 <= novelty < 1 << 60 and len(cuts) == len(packed.inputs)
    if not is_sound or not all(0 <= cut <= array.size for cut, array in zip(cuts, packed.inputs, strict=True)):
        raise ResultsError("a recipe of other inputs")
    return Recipe(first, second, cuts, novelty)


# -- figures


def _say_figures(packed: PackedSet, device: RemoteDevice, times: _Times) -> SpeedMeasurement:
    """As `measuring.measure` says them. On a GPU nothing of a program runs where its time is read: there the device's
    events are the trusted clock too."""
    request = packed.request
    measurement = replace(
        _withhold(packed, device, "not said yet"),
        time=estimate_median([process.program for process in times.pairs]),
        reason="",
        sought_partner="",
        pairs=sum(len(process.program) for process in times.pairs),
        processes=len(times.pairs),
        drawing=sum(process.filling_ns for process in (*times.pairs, *times.apart)) / 1e9,
        repeats=_describe_repeats(packed),
    )
    if request.partner is None:
        return measurement
    precise, trusted = estimate_ratio(times.pairs), estimate_ratio(times.apart, TRUSTED_ERROR)
    if not packed.convention.has_outside_clock and request.grade is MeasuringGrade.FULL:
        trusted = precise
    return say_ratio(measurement, request.partner.name, precise, trusted)


def _describe_repeats(packed: PackedSet) -> str:
    draws: int = packed.entry["draws"]
    if packed.convention.is_disturbed:
        return describe_repeats(packed.request.problem, draws)
    return f"rows: inputs are mixed of {draws} draws by copies on the device"


def _find_share(worker: DataWorker, packed: PackedSet, measurement: SpeedMeasurement) -> Any:
    if measurement.time is None or not math.isfinite(measurement.time.value):
        return None
    work = worker.count_work_at(packed.request.shape_sets[packed.name])
    return measure_share(
        bound_time(packed.request.problem, work, load_peaks(measurement.device)), work, measurement.time
    )
