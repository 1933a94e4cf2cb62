"""`opsmith measure --on`, `--pack`, `--merge`: programs timed on another machine, or by the runner on this one."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opsmith.cli.options import make_pool
from opsmith.cli.progress import show_progress
from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.measuring.measure import SpeedRequest
    from opsmith.measuring.record import SpeedReport
    from opsmith.remote.packing import Pack
    from opsmith.remote.ssh import ReceivedResults

HERE = "here"
OnPlace = Annotated[
    str | None, typer.Option(metavar="ssh:HOST[:PORT]|here", help="Measure on another machine; here: by its runner.")
]
PackFolder = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Write programs and a runner, to be carried to a machine.")
]
MergedResults = Annotated[
    Path | None,
    typer.Option(metavar="RESULTS", help="What the runner of --pack wrote; with the options that --pack had."),
]


@dataclass(frozen=True)
class MeasuringPlace:
    """Where programs are measured, if not in this process: one of the three, or none."""

    on: str | None = None  # ssh:HOST, here
    pack: Path | None = None
    merge: Path | None = None

    def __post_init__(self) -> None:
        named = [name for name in ("on", "pack", "merge") if getattr(self, name) is not None]
        if len(named) > 1:
            raise UsageError(f"--{named[0]} and --{named[1]}: given both; expected one of them")

    @property
    def is_elsewhere(self) -> bool:
        return any(place is not None for place in (self.on, self.pack, self.merge))


def measure_elsewhere(
    place: MeasuringPlace, requests: Sequence[SpeedRequest], trust_tasks: bool
) -> list[list[SpeedReport]] | None:
    """The reports of each request; None: they were packed, and nothing is measured yet."""
    from opsmith.measuring.loop import TimingRoom
    from opsmith.remote.merging import RemoteResults, merge_results, read_results
    from opsmith.remote.packing import pack_requests

    by_request: dict[int, list[SpeedReport]] = {id(request): [] for request in requests}
    with (
        show_progress("programs are packed") as tell,
        make_pool(1, trust_tasks) as pool,
        TimingRoom() as room,
    ):
        pack = pack_requests(room, pool.verify, requests)
        if place.pack is not None:
            _write_folder(pack, place.pack)
            return None
        received = _start_runner(place, pack, tell) if place.merge is None and pack.sets else None
        written = place.merge if received is None else received.write_all()
        results = RemoteResults({}, {}, Path()) if written is None else read_results(written, pack)
        for request, report in merge_results(room, pack, results):
            by_request[id(request)].append(report)
    if received is not None:
        received.remove()
    return [by_request[id(request)] for request in requests]


def _start_runner(place: MeasuringPlace, pack: Pack, tell: Callable[[str], None]) -> ReceivedResults:
    from opsmith.remote.here import measure_here
    from opsmith.remote.ssh import measure_over_ssh, read_place

    if place.on in (None, HERE):
        return measure_here(pack, tell)
    return measure_over_ssh(pack, read_place(place.on), tell)


def _write_folder(pack: Pack, folder: Path) -> None:
    """Said are the programs that are not right, and how to go on."""
    import opsmith
    from opsmith.remote.packing import write_pack

    again = shlex.join(["opsmith", *_replace_option(sys.argv[1:], folder)])
    size = write_pack(pack, folder, again, opsmith.__version__)
    for request, name, reason, _ in pack.refused:
        print(f"opsmith: {request.task.id} at {name} is not packed: {reason}", file=sys.stderr)
    print(f"{folder}: {len(pack.sets)} shape sets, {size / 1e6:.1f} MB; there: python3 runner.py; then here: {again}")


def _replace_option(words: Sequence[str], folder: Path) -> list[str]:
    """The command that packed as the one that merges what comes back."""
    merged: list[str] = []
    for word in words:
        is_value = bool(merged) and merged[-1] == "--pack"
        if is_value:
            merged[-1] = "--merge"
        merged.append(str(folder / "results") if is_value else word)
    if "--merge" not in merged:
        merged = [f"--merge={folder / 'results'}" if word.startswith("--pack=") else word for word in merged]
    return merged
