"""What a cost model says of a program: its figures, its busiest nodes, its slowest chain; or a simulator, of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from opsmith.measuring.objectives import list_objectives
from opsmith.profiling.profiler import ProfileSubject, make_report
from opsmith.records import ProfileReport, Task
from opsmith.targets import get_target
from opsmith.targets.protocols import Costed, SelfProfiled

CountFigures = Callable[[Task, str], Mapping[str, Any]]  # of the cost model, by a process that may run authors' code

MOST_NODES = 12  # of each list, the largest first
_FIGURES = (
    ("cycles", "cycles", "one pass with all nodes at work at once: the busiest node or the traffic, then the path"),
    ("off_chip_bytes", "bytes off the chip", "what is read from and written to memory outside it"),
    ("on_chip_bytes", "bytes on the chip", "memory that its nodes hold at the same time"),
    ("flops", "operations", "floating-point ones of all nodes"),
    ("operational_intensity", "operations for each byte off the chip", "low: it waits for memory, not for arithmetic"),
)


class CostProfiler:
    """Fits `Profiler`."""

    name = "cost"
    is_quick = True

    def __init__(self, count_figures: CountFigures) -> None:
        self._count_figures = count_figures

    def fits_task(self, task: Task) -> bool:
        return isinstance(get_target(task.target), Costed)

    def explain_lack(self, task: Task) -> str:
        return ""

    def profile_program(self, subject: ProfileSubject) -> Iterator[ProfileReport]:
        figures = self._count_figures(subject.task, subject.source)
        rows = ["What the cost model says of one pass at the task's own sizes. It ranks programs of one task.", ""]
        rows += [
            f"{words}: {_write_figure(figures[name])} ({meaning})"
            for name, words, meaning in _FIGURES
            if name in figures
        ]
        rows += [
            f"{own.unit}: {_write_figure(figures[own.name])} ({'less' if own.is_less_better else 'more'} is better)"
            for own in list_objectives(subject.task)
            if own.name in figures and own.name not in {name for name, _, _ in _FIGURES}
        ]
        rows += _describe_nodes(figures.get("nodes", ()))
        rows += _describe_path(figures.get("critical_path", ()))
        yield make_report(self.name, "\n".join(rows) + "\n")


class OutputProfiler:
    """What a simulator prints of a run, as far as its language's file says. Fits `Profiler`."""

    name = "output"
    is_quick = True

    def __init__(self, count_figures: CountFigures) -> None:
        self._count_figures = count_figures

    def fits_task(self, task: Task) -> bool:
        target = get_target(task.target)
        return isinstance(target, SelfProfiled) and bool(target.profile_words)

    def explain_lack(self, task: Task) -> str:
        return ""

    def profile_program(self, subject: ProfileSubject) -> Iterator[ProfileReport]:
        """Nothing where the run says nothing."""
        target = get_target(subject.task.target)
        assert isinstance(target, SelfProfiled)
        figures = self._count_figures(subject.task, subject.source)
        if figures.get("profile"):
            heading = f"What the simulator says of one run at {figures['at']}. {target.profile_words.strip()}"
            yield make_report(self.name, f"{heading}\n\n{figures['profile']}\n")


def _describe_nodes(nodes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Those that decide the figures: by cycles at work, by bytes on and off the chip."""
    for name, words in (
        ("busy", "Busiest nodes (cycles in which each is at work; the first decides the cycles, if memory does not)"),
        ("on_chip_bytes", "Nodes that hold most memory (bytes on the chip)"),
        ("off_chip_bytes", "Most traffic (bytes off the chip; Load and Store stand for inputs and outputs)"),
    ):
        ranked = sorted((node for node in nodes if node.get(name)), key=lambda node: -int(node[name]))[:MOST_NODES]
        if ranked:
            yield from ("", f"{words}:")
            yield from (f"  {_name_node(node)}: {node[name]}" for node in ranked)


def _describe_path(path: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    latencies = [node["latency"] or 0 for node in path]
    if path:
        yield from ("", f"Critical path: {sum(latencies)} cycles until the last node on it gives its first result:")
        for node, latency in zip(path, latencies, strict=True):
            yield f"  {_name_node(node)}: {latency}"


def _name_node(node: Mapping[str, Any]) -> str:
    return f"{node['name']}" if node["line"] is None else f"line {node['line']}, {node['name']}"


def _write_figure(figure: float | None) -> str:
    if figure is None:
        return "not known"
    return f"{figure:g}" if isinstance(figure, float) and abs(figure) < 1e6 else f"{figure:.0f}"
