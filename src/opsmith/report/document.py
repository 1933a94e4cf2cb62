"""One or several runs as one HTML file. Everything in it, nothing asked of any host.

Its one script sorts and searches tables; the page can be read without it, and its policy lets no other script run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata

from opsmith.records import content_hash
from opsmith.report.attempts import GROUPS, CallView, SampleView, TaskView, task_view
from opsmith.report.comparison import align_problems, tabulate_problems
from opsmith.report.curves import DrawnFigure, draw_picture
from opsmith.report.failures import FailureReader, FailureView
from opsmith.report.languages import read_languages
from opsmith.report.many_runs import draw_courses, gather_runs, list_figures, tabulate_runs
from opsmith.report.pages import Anchors, hash_script, name_agent, render_page
from opsmith.report.views import RunView, run_view
from opsmith.store import Store


@dataclass(frozen=True)
class RunReport:
    view: RunView
    figures: tuple[DrawnFigure, ...]
    tasks: tuple[TaskView, ...]
    failures: FailureView
    failures_by_task: Mapping[str, FailureView]


@dataclass(frozen=True)
class ShownMessage:
    """One message of prompts; `uses`: prompts that hold it."""

    name: str
    role: str
    text: str
    uses: int


@dataclass(frozen=True)
class ShownPrompt:
    name: str
    title: str
    messages: tuple[ShownMessage, ...]
    call: CallView
    run: str


@dataclass(frozen=True)
class Prompts:
    shared: tuple[ShownMessage, ...]
    prompts: tuple[ShownPrompt, ...]


def write_document(store: Store, runs: Sequence[str], groups: int = GROUPS) -> str:
    """The HTML of these runs (whole ids), with at most so many groups of attempts of each task."""
    reports = [_run_report(store, run, groups) for run in runs]
    views = [report.view for report in reports]
    many = gather_runs(views) if len(runs) > 1 else None
    title = f"Report of run {views[0].label}" if len(runs) == 1 else f"Report of {len(runs)} runs"
    return render_page(
        "report.html",
        title=title,
        policy=_choose_policy(reports),
        runs=reports,
        figures=tuple(map(draw_picture, draw_courses(many))) if many is not None else (),
        tables={"All runs": tabulate_runs(many)} if many is not None else {},
        languages=read_languages(store, views),
        side_by_side=tabulate_problems(views, align_problems(store, views)) if len(runs) > 1 else None,
        prompts=_gather_prompts(reports),
        links=Anchors(),
        version=metadata.version("opsmith"),
    )


def draw_pictures(view: RunView) -> tuple[DrawnFigure, ...]:
    """The figures of a run, drawn for a page."""
    return tuple(map(draw_picture, list_figures(view)))


def _run_report(store: Store, run: str, groups: int) -> RunReport:
    view = run_view(store, run)
    optimised = view.optimised.result if view.optimised is not None else None
    tasks = tuple(task_view(store, view.id, row, groups, optimised=optimised) for row in view.tasks)
    reader = FailureReader(store, view.id)
    by_task = {row.id: reader.view_failures(row.id) for row in view.tasks}
    return RunReport(view, draw_pictures(view), tasks, reader.view_failures(), by_task)


def _gather_prompts(reports: Sequence[RunReport]) -> Prompts:
    """Each prompt of the samples shown, once; messages that several of them hold, apart."""
    by_name = {call.prompt: (title, call, run) for title, call, run in _shown_prompts(reports)}
    uses = Counter(content_hash(*message) for _, call, _ in by_name.values() for message in set(call.messages))
    prompts = []
    for name, (title, call, run) in by_name.items():
        names = [(content_hash(*message), message) for message in call.messages]
        messages = tuple(ShownMessage(own, *message, uses[own]) for own, message in names)
        prompts.append(ShownPrompt(name, title, messages, call, run))
    shared = {message.name: message for prompt in prompts for message in prompt.messages if message.uses > 1}
    return Prompts(tuple(shared.values()), tuple(prompts))


def _list_shown(report: RunReport) -> Iterator[SampleView]:
    """The samples that are shown in full."""
    for task in report.tasks:
        yield from (group.sample for group in task.groups)
        yield from task.shown_steps


def make_policy() -> str:
    """What a report may do that shows no picture of a profile."""
    own = f"default-src 'none'; style-src 'unsafe-inline'; script-src {hash_script()}"
    return f"{own}; base-uri 'none'; form-action 'none'"


def _choose_policy(reports: Sequence[RunReport]) -> str:
    """Pictures of profiles stand in the file itself; a report without any allows none."""
    samples = (sample for report in reports for sample in _list_shown(report))
    profiles = (profile for sample in samples if sample.improvement for profile in sample.improvement.profiles)
    policy = make_policy()
    return f"{policy}; img-src data:" if any(profile.picture for profile in profiles) else policy


def _shown_prompts(reports: Sequence[RunReport]) -> Iterator[tuple[str, CallView, str]]:
    """(title, request, run) of every request shown."""
    for report in reports:
        where = f" of {report.view.id}" if len(reports) > 1 else ""
        for sample in _list_shown(report):
            for call in sample.calls:
                if call.goes_on:
                    continue
                title = f"{sample.task}, round {sample.round}{where}: {name_agent(call.agent)}"
                yield title, call, report.view.id
