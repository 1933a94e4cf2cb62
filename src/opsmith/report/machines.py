"""Tables of devices: what this machine is, and the most that its threads can do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from opsmith.devices.describe import Device
from opsmith.devices.lease import Holder
from opsmith.devices.peaks import Peaks
from opsmith.report.tables import DESCRIPTION, make_table
from opsmith.targets.probed import ProbedDevice

UNMEASURED = "not measured; try: opsmith devices --measure"


def tabulate_device(
    name: str, device: Device, peaks: Peaks | None, holder: Holder | None, limits: str
) -> Iterator[Table]:
    """The description, then the peaks where they are known. `limits`: what holds for all processes of a verdict."""
    grid = make_table("device", name)
    for label, value in _list_facts(device):
        grid.add_row(label, "not known" if value is None else str(value))
    grid.add_row("limits in total", limits)
    grid.add_row("leased to", "nobody" if holder is None else str(holder))
    for team in (peaks, *peaks.teams) if peaks is not None else ():
        units = {
            dtype: "GOP/s" if dtype.startswith("int") else "GFLOP/s" for dtype in team.gflops
        }  # FLOP are of floats
        rates = (f"{figure:.0f} {units[dtype]} in {dtype}" for dtype, figure in team.gflops.items())
        grid.add_row("peaks", f"{_write_threads(team)}: {', '.join(rates)}")
    if peaks is None:
        grid.add_row("peaks", UNMEASURED)
    yield grid
    if peaks is not None:
        for team in (peaks, *peaks.teams):
            yield _tabulate_bandwidths(team)


def tabulate_probed(devices: Sequence[ProbedDevice]) -> Table:
    """The devices beside the processor, and under each what is missing."""
    grid = make_table(
        "device", "programs are", "what it is", "driver or compiler", "memory", least=("memory",), lines=DESCRIPTION
    )
    for device in devices:
        name = f"{device.name} ({device.architecture})" if device.architecture else device.name
        memory = "" if device.memory is None else write_bytes(device.memory)
        grid.add_row(device.device, device.use or "not run", name, device.driver or device.compiler, memory)
        for lack in device.lacks:
            grid.add_row("", "missing:", Text(lack))
    return grid


def _list_facts(device: Device) -> Iterator[tuple[str, object]]:
    yield "processor", device.name
    yield "instruction set", device.isa or device.architecture
    yield "cores", device.cores
    yield "cores for us", device.usable_cores
    for cache in device.caches:
        shared = "" if cache.cores in (None, 1) else f", shared by {cache.cores} cores"
        yield f"level {cache.level} cache", f"{write_bytes(cache.size)}, {cache.kind.lower()}{shared}"
    yield "memory", None if device.memory is None else write_bytes(device.memory)
    yield "frequency, MHz", device.mhz
    yield "frequency at most, MHz", device.max_mhz
    yield "frequency chosen by", device.governor
    yield "hypervisor", device.hypervisor
    yield "compiler", device.compiler
    yield "digest", device.digest[:12]


def _write_threads(peaks: Peaks) -> str:
    return "one thread" if peaks.threads == 1 else f"{peaks.threads} threads"


def _tabulate_bandwidths(peaks: Peaks) -> Table:
    grid = make_table(
        f"data, {_write_threads(peaks)}", "read, GB/s", "triad, GB/s", right=("read, GB/s", "triad, GB/s")
    )
    for row in peaks.bandwidths:
        grid.add_row(write_bytes(row.working_set), f"{row.read:.1f}", f"{row.triad:.1f}")
    return grid


def write_bytes(count: int) -> str:
    """
    >>> write_bytes(49152), write_bytes(25276510208)
    ('48 KiB', '23.5 GiB')
    """
    unit, shift = next((pair for pair in (("GiB", 30), ("MiB", 20), ("KiB", 10)) if count >> pair[1]), ("B", 0))
    return f"{count / (1 << shift):.3g} {unit}"
