"""One sample, and what came of one task: verdict and program first, what was asked on demand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from opsmith.models import Message
from opsmith.records import Outcome, Task, printable
from opsmith.report.conversations import ExampleReader, is_tool_turn, list_calls
from opsmith.report.differences import find_difference
from opsmith.report.optimised import describe_suggestion
from opsmith.report.tables import DESCRIPTION, count_noun, make_table
from opsmith.report.verdicts import explain_verdict, name_fault, verdict_json
from opsmith.results.optimisation import find_parent
from opsmith.results.refusals import RunRefusals, describe_nearness, read_refusals
from opsmith.store import Store
from opsmith.store.queries import Call, CandidateRow, SampleDetail, SampleRow
from opsmith.store.rows import ToolCallEntry

PASSED = 5  # samples that a task's page names


def name_outcome(row: SampleRow) -> str:
    """`passed`, `refused at MATCH`, `unjudged`."""
    if row.outcome is None:
        return Outcome.UNJUDGED.value
    refused = row.outcome is Outcome.REFUSED and row.stage is not None
    return f"{row.outcome.value} at {row.stage.name}" if refused and row.stage else row.outcome.value


def sample_text(detail: SampleDetail, task: Task) -> Iterator[str]:
    """What came of a sample: the verdict of what counts, its program, then programs before it."""
    row = detail.row
    place = f"task {row.task}, round {row.round}, temperature {row.temperature:g}, number {row.number}"
    yield printable(f"sample {row.id}: {name_outcome(row)}")
    yield printable(place)
    for candidate in sorted(detail.candidates, key=lambda candidate: not candidate.final):
        yield from _write_candidate(candidate, task)
    for failure in detail.failures:
        yield f"--- left unjudged ---\n{failure}"


def _write_candidate(candidate: CandidateRow, task: Task) -> Iterator[str]:
    what = "program" if candidate.final else "earlier program, which does not count"
    yield f"--- verdict ---\n{explain_verdict(task, candidate.verdict)}"
    yield from (f"warning: {warning}" for warning in candidate.verdict.public_warnings)
    yield f"{_write_heading(candidate.agent, what)}\n{candidate.source or '(no program)'}"


def conversation_text(detail: SampleDetail, used: Sequence[ToolCallEntry] = ()) -> Iterator[str]:
    """What was asked and answered: each request and reply with the tools that it called. Of a request that goes on
    after calls only what was not said before."""
    for call in detail.calls:
        for message in _list_news(call):
            yield f"{_write_heading(call.agent, message.role)}\n{message.content}"
        for text, finish in zip(call.reply.texts, call.reply.finish or ("",) * len(call.reply.texts), strict=False):
            head = _write_heading(call.agent, f"reply ({finish or 'end not told'})")
            yield f"{head}\n{text}"
        yield from list_calls(call.agent, used)


def prompts_text(store: Store, run: str, task: str) -> Iterator[str]:
    """What each round asked for a task, as its first sample was asked: the demonstrations by name, then the messages;
    one that an earlier round began with is not said again."""
    reader, said = ExampleReader(store, run), dict[str, int]()
    firsts = {row.round: row.id for row in reversed(list(store.list_samples(run, task)))}
    for number, name in sorted(firsts.items()):
        detail = store.find_sample(run, name)
        yield printable(f"=== {task}, round {number}: what sample {name[:12]} was asked ===")
        yield from list(reader.describe_shown(detail)) or ["no demonstrations"]
        for call in {call.agent: call for call in reversed(detail.calls)}.values():
            for message in call.messages:
                earlier = said.setdefault(message.content, number)
                text = message.content if earlier == number else f"(as in round {earlier})"
                yield f"{_write_heading(call.agent, message.role)}\n{text}"


def sample_json(detail: SampleDetail, with_prompt: bool) -> dict[str, Any]:
    """What `opsmith show RUN SAMPLE --json` prints."""
    row = detail.row
    candidates = [
        {
            "agent": candidate.agent,
            "counts": candidate.final,
            "program": candidate.source,
            "verdict": verdict_json(row.task, candidate.verdict),
        }
        for candidate in detail.candidates
    ]
    described = {"sample": row.id, "task": row.task, "round": row.round, "temperature": row.temperature}
    described |= {"number": row.number, "outcome": name_outcome(row).partition(" ")[0]}
    described |= {"stage": row.stage.name if row.stage else None, "candidates": candidates}
    described |= {"failures": list(detail.failures)}
    requests = [
        {"agent": call.agent, "messages": [{"role": own.role, "content": own.content} for own in call.messages]}
        | {"replies": list(call.reply.texts), "seed": call.seed}
        for call in detail.calls
    ]
    return described | ({"requests": requests} if with_prompt else {})


def print_task(console: Console, store: Store, run: str, task: str) -> None:
    """How often a task was solved, why its other samples were refused, and where to look next."""
    rows = list(store.list_samples(run, task))
    refusals = read_refusals(store, run, task)
    counts = Counter("refused" if row.outcome is Outcome.REFUSED else name_outcome(row) for row in rows)
    words = ", ".join(f"{counts[name]:,} {name}" for name in ("passed", "refused", "unjudged") if counts[name])
    unanswered = "none has a verdict" if refusals.unjudged else "no answer yet"
    console.print(printable(f"{task}: {count_noun(len(rows), 'sample')}: {words or unanswered}"))
    passed = [row.id[:12] for row in rows if row.outcome is Outcome.PASSED]
    if passed:
        more = f" and {len(passed) - PASSED} more" if len(passed) > PASSED else ""
        console.print(f"passed  {', '.join(passed[:PASSED])}{more}")
    if refusals.groups:
        console.print(tabulate_refusals(refusals))
    if refusals.lacks:
        console.print(printable(refusals.lacks))
    for group in refusals.unjudged:
        console.print(
            printable(f"unjudged  {group.samples:,}, at fault: {name_fault(group.charged_to)}: {group.reason}")
        )
    if not rows:
        return
    console.print(printable(f"look at one:  opsmith show {run} SAMPLE"), soft_wrap=True)
    console.print(printable(f"all samples:  opsmith show {run} {task} --samples"), soft_wrap=True)


def tabulate_refusals(refusals: RunRefusals) -> Table:
    """A row for each reason, the nearest miss first."""
    grid = make_table(
        "samples", "refused at", "reason", "nearest miss", "how near",
        right=("samples",), title="refusals, the nearest miss first", lines=DESCRIPTION, least=("refused at",),
    )  # fmt: skip
    for group in refusals.sort_by_nearness():
        near = (group.nearest.sample[:12], describe_nearness(group.nearest.nearness))
        grid.add_row(f"{group.samples:,}", group.stage.name, printable(group.reason), *near)
    return grid


def task_json(store: Store, run: str, task: str) -> dict[str, Any]:
    """What `opsmith show RUN TASK --json` prints."""
    refusals = read_refusals(store, run, task)
    rows = [
        {"sample": row.id, "round": row.round, "temperature": row.temperature, "number": row.number}
        | {"stage": row.stage.name if row.stage else None, "outcome": name_outcome(row).partition(" ")[0]}
        for row in store.list_samples(run, task)
    ]
    groups = [
        {"stage": group.stage.name, "kind": group.kind, "reason": group.reason, "samples": group.samples}
        | {"programs": group.programs, "nearest": group.nearest.sample}
        for group in refusals.sort_by_nearness()
    ]
    unjudged = [
        {"charged_to": group.charged_to, "reason": group.reason, "samples": group.samples}
        for group in refusals.unjudged
    ]
    return {"run": run, "task": task, "refusals": groups, "unjudged": unjudged, "samples": rows}


def samples_table(samples: Iterable[SampleRow]) -> Table:
    rows = make_table(
        "sample", "round", "temperature", "number", "stage", "outcome",
        right=("round", "temperature", "number"), least=("number", "temperature", "round"),
    )  # fmt: skip
    for row in samples:
        outcome = (row.stage.name if row.stage else "-", row.outcome.value if row.outcome else "unjudged")
        rows.add_row(row.id[:12], str(row.round), f"{row.temperature:g}", str(row.number), *outcome)
    return rows


def _list_news(call: Call) -> list[Message]:
    """The messages of a request that no reply and no result before it says."""
    if not is_tool_turn(call.agent):
        return list(call.messages)
    said = max(
        (place for place, message in enumerate(call.messages) if message.role in {"assistant", "tool"}), default=0
    )
    return [message for message in call.messages[said + 1 :] if message.role == "user"]


def _write_heading(agent: str, what: str) -> str:
    return printable(f"--- {agent}: {what} ---")


def list_improvement(store: Store, run: str, detail: SampleDetail) -> Iterator[str]:
    """What a sample of an optimisation round was given, and what it changed; nothing of any other sample."""
    parent = find_parent(store, run, detail.row)
    if parent is None:
        return
    suggestion = store.read_suggestion(detail.row.id)
    yield f"--- suggestion ---\n{describe_suggestion(suggestion) if suggestion else 'none was made'}"
    for profile in store.read_profiles(run, detail.row.task, [parent]):
        size = f"{len(profile.body) * 3 // 4:,} bytes"
        text = f"a picture ({profile.media}, {size}); `opsmith ui` shows it"
        text = profile.body if profile.media.startswith("text/") else text
        yield f"--- {printable(f'profile: {profile.kind}')} ---\n{text}"
    yield from _list_differences(detail, store.read_text(parent))


def _list_differences(detail: SampleDetail, parent: str) -> Iterator[str]:
    for candidate in detail.candidates:
        if candidate.source is None:
            continue
        place = "the start program" if candidate.parent_sample is None else f"sample {candidate.parent_sample[:12]}"
        difference = find_difference(candidate.source, parent, f"what it set out from, of {place}")
        if difference is not None:
            lines = ("..." if line.sign == "@" else f"{line.sign} {line.text}" for line in difference.lines)
            yield "\n".join([f"--- difference of the {candidate.agent} from {difference.against} ---", *lines])
