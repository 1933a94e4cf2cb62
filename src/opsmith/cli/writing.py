"""`opsmith prompt`, `codegen` and `cost`: what would be sent, the test script, the cost model."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import (
    AsJson,
    CandidateSeconds,
    Impl,
    StorePlace,
    TargetName,
    TargetOptions,
    TrustTasks,
    make_pool,
    read_target_options,
)
from opsmith.cli.progress import show_progress
from opsmith.cli.run_options import offer_settings
from opsmith.cli.text import read_text
from opsmith.errors import UsageError
from opsmith.terminal import write_document

if TYPE_CHECKING:
    from opsmith.agents.manual import Manual, Quotation
    from opsmith.records import Task
    from opsmith.targets import Target

MOST_WORDS = 8  # of a quotation's reasons, the rarest ones
TaskName = Annotated[str, typer.Argument(metavar="TASK", help="An id or a YAML file.")]


def add_to(app: CommandApp) -> None:
    app.add("prompt", print_prompt, has_tables=False)
    app.add("manual", print_manual, has_tables=False)
    app.add("codegen", write_test_script, has_tables=False)
    app.add("cost", print_cost)


@offer_settings("translate example manual manual_tokens manual_sections")
def print_prompt(
    stated: dict[str, Any],
    task: TaskName,
    target: TargetName = None,
    option: TargetOptions = None,
    from_run: Annotated[
        str | None, typer.Option("--from", metavar="RUN", help="Show all experiences of this run as demonstrations.")
    ] = None,
    *,
    place: StorePlace,
    bare: Annotated[
        bool, typer.Option("--bare", help="Write the task in plain Python, without structural IR.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print what a model would be sent, and of a manual which passages for which words."""
    from opsmith.agents.prompt import PromptStyle, compose_prompt
    from opsmith.learn.references import is_run, require_references
    from opsmith.learn.select import stratify_experiences
    from opsmith.report.tables import count_noun
    from opsmith.results.bests import list_best
    from opsmith.suites import load_task
    from opsmith.targets import get_target

    translate = stated.get("translate")
    task_read = load_task(task, target, read_target_options(option))
    experiences, references = [], {}
    with place.open() if from_run is not None or is_run(translate) else nullcontext() as store:
        references = require_references(translate, [task_read], store)
        if store is not None and from_run is not None:
            experiences = [best.experience for best in list_best(store, store.find_run(from_run))]
    demonstrations = [
        experience for stratum in stratify_experiences(experiences, 1) for experience in stratum
    ]  # hardest first
    style = PromptStyle("bare" if bare else "structural", has_example=stated.get("example", True))
    composed = compose_prompt(
        task_read,
        demonstrations,
        get_target(task_read.target),
        None,
        0,
        style=style,
        reference=references.get(task_read.id),
        manual=_read_manual(get_target(task_read.target), stated),
    )
    if as_json:
        messages = [{"role": message.role, "content": message.content} for message in composed.messages]
        shown = [experience.task.id for experience in composed.demonstrations_used]
        quoted = {"manual": list(map(_describe_quotation, composed.quotations))} if composed.quotations else {}
        counted = {"input_tokens": composed.input_tokens, "demonstrations": shown, **quoted}
        print(json.dumps({"messages": messages, **counted}, indent=1))
        return
    for message in composed.messages:
        write_document(f"--- {message.role} ---\n{message.content}\n")
    print(
        f"about {composed.input_tokens:,} tokens, {count_noun(len(composed.demonstrations_used), 'demonstration')}",
        file=sys.stderr,
    )
    for quotation in composed.quotations:
        print(f"of the manual: {_describe_reasons(quotation)}", file=sys.stderr)


@offer_settings("manual manual_tokens")
def print_manual(
    stated: dict[str, Any],
    target: Annotated[str, typer.Argument(metavar="LANGUAGE", help="A language, or a language file with a manual.")],
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="Words, a task's text or an error message; none: all titles.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Try what of a language's manual a prompt would quote."""
    from opsmith.targets import get_target

    manual = _read_manual(get_target(target), stated)
    if manual is None:
        raise UsageError(f"manual: {target} has none; try: --manual FILE, or `files` under [manual] in a language file")
    quotations = manual.passages.quotations
    if query.strip():
        quotations = sorted(manual.choose_passages(query), key=lambda quotation: -quotation.score)
        quotations = [quotation for quotation in quotations if quotation.score]
    if as_json:
        print(json.dumps([_describe_quotation(quotation) for quotation in quotations], indent=1))
        return
    for quotation in quotations:
        reasons, text = _describe_reasons(quotation), f"{quotation.text}\n\n"
        write_document(f"--- {reasons} ---\n{text}" if query.strip() else f"{quotation.title}\n")
    tokens = sum(quotation.size for quotation in quotations) // 4
    print(f"{len(quotations)} of {len(manual.passages.quotations)} passages, about {tokens:,} tokens", file=sys.stderr)


def _read_manual(target: Target, stated: Mapping[str, Any]) -> Manual | None:
    """As options say, or the language's own. Raises UsageError and TaskError."""
    from opsmith.agents.manual import find_manual
    from opsmith.config import resolve_settings

    names = ("manual", "manual_tokens", "manual_sections")
    showing = resolve_settings(None, {name: stated[name] for name in names if name in stated}).teamwork.showing
    return find_manual(target, showing.manual, showing.manual_tokens, showing.manual_sections)


def _describe_quotation(quotation: Quotation) -> dict[str, Any]:
    return {
        "title": quotation.title,
        "score": round(quotation.score, 3),
        "words": quotation.words,
        "text": quotation.text,
    }


def _describe_reasons(quotation: Quotation) -> str:
    if not quotation.score:
        return f"     –  {quotation.title}  (it fits)"
    words = " ".join(quotation.words[:MOST_WORDS])
    return f"{quotation.score:6.2f}  {quotation.title}  ({words})"


def write_test_script(
    task: TaskName,
    target: TargetName = None,
    option: TargetOptions = None,
    impl: Impl = None,
    output: Annotated[
        Path | None, typer.Option("-o", metavar="FILE", help="Write the script there; default: stdout.")
    ] = None,
) -> None:
    """Write a self-contained test script."""
    from opsmith.targets import get_target
    from opsmith.targets.capabilities import write_script

    task_read, source = _task_and_program(task, target, option, impl)
    script = write_script(get_target(task_read.target), task_read, source)
    if output is None:
        write_document(script)
    else:
        output.write_text(script, encoding="utf-8")


def print_cost(
    task: TaskName,
    target: TargetName = None,
    option: TargetOptions = None,
    impl: Impl = None,
    shapes: Annotated[
        str, typer.Option(metavar="NAME,...", help="Count cycles at these shape sets, where commands run programs.")
    ] = "",
    candidate_seconds: CandidateSeconds = None,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
) -> None:
    """Print a program's cost figures."""
    if shapes:
        figures = _count_at_shapes(*_task_and_program(task, target, option, impl), shapes.split(","))
        _print_figures(task, figures, as_json)
        return
    with make_pool(1, trust_tasks, candidate_seconds) as pool, show_progress("figures are counted"):
        pool.start_early()
        task_read, source = _task_and_program(task, target, option, impl)
        figures = pool.cost(task_read, source)
    _print_figures(task_read.id, figures, as_json)


def _print_figures(title: str, figures: Mapping[str, Any], as_json: bool) -> None:
    from opsmith.report.tables import figures_tables, open_console

    if as_json:
        print(json.dumps(figures))
    else:
        brief = {name: figure for name, figure in figures.items() if name != "profile"}
        open_console().print(*figures_tables(brief, title=title))


def _count_at_shapes(task: Task, source: str, names: Sequence[str]) -> dict[str, Any]:
    """By shape set, the cycles there."""
    from opsmith.measuring.costs import choose_counted_sets, count_at_sizes, list_counted_sets
    from opsmith.measuring.loop import TimingRoom

    sizes = list_counted_sets(task)
    with TimingRoom() as room:
        return {name: count_at_sizes(room, task, source, sizes[name]) for name in choose_counted_sets(task, names)}


def _task_and_program(name: str, target: str | None, option: list[str] | None, impl: Path | None) -> tuple[Task, str]:
    from opsmith.suites import load_task

    task = load_task(name, target, read_target_options(option))
    source = task.impl if impl is None else read_text(impl)
    if source is None:
        raise UsageError(f"task {task.id}: {task.path} has no impl of its own; try: --impl FILE")
    return task, source
