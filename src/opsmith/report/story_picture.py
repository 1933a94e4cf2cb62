"""The picture of a task's story. One SVG with vector text, in one column or two, readable on light and dark pages.

Widths are reckoned from a monospaced font, a little wider than any in its list, so that no text leaves its panel.
"""

from __future__ import annotations

import html
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from opsmith.measuring.objectives import list_objectives
from opsmith.records import Outcome, Stage, Task, printable
from opsmith.report.attempts import find_improvement, find_task, read_task_speeds
from opsmith.report.optimised import UNJUDGED
from opsmith.report.tables import count_noun, not_a_model
from opsmith.report.verdicts import label_of
from opsmith.results.bests import find_best
from opsmith.results.optimisation import ImprovingStep, read_optimisation
from opsmith.results.refusals import read_refusals
from opsmith.store import Store
from opsmith.store.attempts import count_stages
from opsmith.store.queries import KeptExperience
from opsmith.store.rows import RunInfo
from opsmith.targets import get_target
from opsmith.targets.capabilities import explain_message
from opsmith.targets.protocols import Costed

WIDTH, NARROW = 880, 400  # of pictures for a page of a desk and of a phone
_TWO_COLUMNS = 700  # at least, for panels beside each other
_MOST_LINES = 24  # of one text; the rest is counted
_CHAR, _LINE = 7.25, 17.0  # of the font at 12 px
_PAD, _GAP, _HEAD, _BAR = 14.0, 14.0, 24.0, 22.0
_STYLE = """\
text{font:12px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#1f2328;white-space:pre}
.title{font-weight:700;font-size:15px}.head{font-weight:700}.dim{fill:#57606a}
.card{fill:#ffffff;stroke:#d0d7de}.panel{fill:#f6f8fa;stroke:#d0d7de}
.passed{fill:#0a5fb4}.refused{fill:#a44a00}.other{fill:#6e7781}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.dim{fill:#9aa4af}.card{fill:#0d1117;stroke:#3d444d}
.panel{fill:#161b22;stroke:#3d444d}.passed{fill:#79b8ff}.refused{fill:#ffa657}.other{fill:#8b949e}}"""


@dataclass(frozen=True)
class _Line:
    text: str
    style: str = ""  # a class of the stylesheet


@dataclass(frozen=True)
class _Panel:
    """One framed part: a heading, then lines, some of them under a bar of shares."""

    heading: str
    style: str  # of its heading
    lines: tuple[_Line, ...]
    shares: tuple[tuple[str, int], ...] = field(default=())  # (class, count) of a bar above the lines; (): no bar

    @property
    def height(self) -> float:
        return 2 * _PAD + _HEAD + _LINE * len(self.lines) + (_BAR if self.shares else 0.0)


def draw_story(story: TaskStory, width: int = WIDTH) -> str:
    """The whole file. From 700 pixels on the miss stands beside the rest."""
    split = 3 if width >= _TWO_COLUMNS else 5
    inner = (width - 3 * _GAP) / 2 if split == 3 else width - 2 * _GAP
    panels = _make_panels(story, int((inner - 2 * _PAD) / _CHAR))
    title = [_Line(line, "title") for line in _wrap_text(_word_title(story), int((width - 2 * _GAP) / 9.2), "")]
    origin = [_Line(line, "dim") for line in _wrap_text(story.origin, int((width - 2 * _GAP) / _CHAR), "")]
    top = 2 * _GAP + 14 + _LINE * (len(title) - 1)
    columns = [panels[:split], panels[split:]]
    bottom = top + max(sum(panel.height + _GAP for panel in column) for column in columns)
    body = _write_lines(title, _GAP, 2 * _GAP + 4)
    for place, column in enumerate(columns):
        body += _write_column(column, _GAP + place * (inner + _GAP), top, inner, bottom)
    body += _write_lines(origin, _GAP, bottom + 6)
    return _write_file(_word_title(story), width, bottom + _LINE * len(origin) + 6, body)


def _make_panels(story: TaskStory, chars: int) -> list[_Panel]:
    return [
        _Panel("1  What is asked for, in PyTorch", "head", tuple(_describe_task(story, chars))),
        _Panel(
            f"2  {count_noun(story.judged, 'program')} {'was' if story.judged == 1 else 'were'} judged",
            "head",
            *_count_ends(story, chars),
        ),
        _describe_solution(story.solution, story.costs, chars),
        _describe_nearest(story, chars),
        *([_describe_steps(story, chars)] if story.steps else []),
    ]


def _describe_task(story: TaskStory, chars: int) -> Iterator[_Line]:
    yield from _write_code(story.reference, chars)
    if story.functions:
        yield _Line("")
        words = f"with the functions {', '.join(story.functions)}"
        yield from (_Line(line, "dim") for line in _wrap_text(words, chars, indent=""))


def _word_title(story: TaskStory) -> str:
    return f"{story.task}: from a PyTorch reference to a program in {story.language}"


def _count_ends(story: TaskStory, chars: int) -> tuple[tuple[_Line, ...], tuple[tuple[str, int], ...]]:
    """A line for each way to end, and the bar above them."""
    lines: list[_Line] = []
    for label, count in story.ends:
        if label in {Outcome.PASSED.value, Outcome.UNJUDGED.value}:
            words = f"{count:,} {label}"
        else:
            meaning = f": {MEANINGS[label]}" if label in MEANINGS else ""
            words = f"{count:,} refused at {label}{meaning}"
        lines += [_Line(line, _style_end(label)) for line in _wrap_text(words, chars)]
    return tuple(lines), tuple((_style_end(label), count) for label, count in story.ends)


def _style_end(label: str) -> str:
    if label == Outcome.PASSED.value:
        return "passed"
    return "other" if label == Outcome.UNJUDGED.value else "refused"


def _describe_nearest(story: TaskStory, chars: int) -> _Panel:
    program = story.nearest
    if story.start is not None:
        lines = [*_write_code(story.start.source, chars), _Line("")]
        lines += [_Line(line, "passed") for line in _wrap_text(story.start.message, chars, indent="")]
        return _Panel("4  The program that it was made from", "head", tuple(lines))
    if program is None:
        is_refused = any(_style_end(label) == "refused" for label, _ in story.ends)
        heading = "No program was refused" if story.judged else "No program was judged yet"
        return _Panel(f"4  {'Why: opsmith show RUN SAMPLE' if is_refused else heading}", "head", ())
    lines = [*_write_code(program.source, chars), _Line("")]
    lines += [_Line(line, "refused") for text in program.message.splitlines() for line in _wrap_text(text, chars)]
    return _Panel(f"4  The nearest miss, refused at {program.stage}", "head refused", tuple(lines))


def _describe_steps(story: TaskStory, chars: int) -> _Panel:
    """A line for each right attempt with its ratio to the start program; the others are counted by how they ended."""
    lines, wrong = list[_Line](), Counter[str]()
    for step in story.steps:
        if step.to_start is None:
            wrong[UNJUDGED if step.state is None else step.state.value] += 1
            continue
        words = f"round {step.row.round}: {step.to_start}{', kept' * step.is_kept}"
        words += f": {step.row.suggestion.what}" if step.row.suggestion else ""
        lines += [_Line(line, "passed" if step.is_kept else "") for line in _wrap_text(words, chars)]
    counts = ", ".join(f"{count} {state}" for state, count in wrong.items())
    if counts:
        lines += [_Line(line, "dim") for line in _wrap_text(f"without a ratio: {counts}", chars, indent="")]
    return _Panel("5  What rounds tried, times as good as the start", "head", tuple(lines))


def _describe_solution(program: ShownProgram | None, costs: Sequence[str], chars: int) -> _Panel:
    if program is None:
        return _Panel("3  No program is right yet", "head", ())
    lines = [*_write_code(program.source, chars), _Line("")]
    texts = (program.message.splitlines()[0], *costs)
    lines += [_Line(line, "passed") for text in texts for line in _wrap_text(text, chars, indent="")]
    return _Panel("3  The program that was kept", "head passed", tuple(lines))


def _write_code(text: str, chars: int) -> Iterator[_Line]:
    """A program's lines; too long ones go on below, too many are counted."""
    rows = [row for line in text.rstrip().splitlines() for row in _wrap_text(line, chars)]
    yield from (_Line(row) for row in rows[:_MOST_LINES])
    if len(rows) > _MOST_LINES:
        yield _Line(f"... {count_noun(len(rows) - _MOST_LINES, 'more line')}", "dim")


def _wrap_text(text: str, chars: int, indent: str = "    ") -> list[str]:
    """On lines of so many characters, the later ones further in than the first."""
    bare = printable(text.expandtabs(4)).rstrip()
    first = bare[: len(bare) - len(bare.lstrip())][: chars // 2]
    wrapped = textwrap.wrap(bare.strip(), chars, initial_indent=first, subsequent_indent=first + indent)
    return wrapped or [""]


def _write_column(panels: Sequence[_Panel], x: float, top: float, width: float, bottom: float) -> str:
    """Panels below each other, the last one as high as what is left."""
    body, y = "", top
    for panel in panels:
        height = panel.height if panel is not panels[-1] else bottom - y - _GAP
        body += _write_panel(panel, x, y, width, height)
        y += height + _GAP
    return body


def _write_panel(panel: _Panel, x: float, y: float, width: float, height: float) -> str:
    frame = f'<rect class="panel" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="6"/>'
    text_x, top = x + _PAD, y + _PAD + 12
    bar = _write_bar(panel.shares, text_x, top + 10, width - 2 * _PAD) if panel.shares else ""
    lines_top = top + _HEAD + (_BAR if panel.shares else 0.0)
    heading = _write_lines([_Line(panel.heading, panel.style)], text_x, top)
    return frame + heading + bar + _write_lines(panel.lines, text_x, lines_top)


def _write_bar(shares: Sequence[tuple[str, int]], x: float, y: float, width: float) -> str:
    """Counts as parts of one bar, each at least two pixels wide, with a gap between them."""
    total = sum(count for _, count in shares)
    room = width - 4.0 * len(shares)
    rects, start = [], x
    for style, count in shares:
        share = 2.0 + room * count / total
        rects.append(f'<rect class="{style}" x="{start:.1f}" y="{y:.1f}" width="{share:.1f}" height="12" rx="2"/>')
        start += share + 2.0
    return "".join(rects)


def _write_lines(lines: Sequence[_Line], x: float, y: float) -> str:
    return "".join(_write_line(line, x, y + _LINE * number) for number, line in enumerate(lines) if line.text)


def _write_line(line: _Line, x: float, y: float) -> str:
    style = f' class="{line.style}"' if line.style else ""
    text = html.escape(line.text).replace("  ", "\u00a0 ").replace("\u00a0  ", "\u00a0\u00a0 ")
    return f'<text{style} x="{x:.1f}" y="{y:.1f}">{text}</text>\n'


def _write_file(title: str, width: float, height: float, body: str) -> str:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    name = html.escape(printable(title))
    card = f'<rect class="card" x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="8"/>\n'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{name}" {size}>\n'
    return f"{head}<title>{name}</title>\n<style>\n{_STYLE}\n</style>\n{card}{body}</svg>\n"


MEANINGS = {  # of the stages that every language has, and of those that several have
    "FORMAT": "no program in the reply",
    "PARSE": "not a text of the language",
    "TYPE": "the types do not fit",
    "AFFINE": "a stream is used twice",
    "COMPILE": "it does not compile",
    "RUN": "it fails while it runs",
    "MATCH": "it runs, and the values are wrong",
}
_FIGURES = {  # of a cost model, in words
    "cycles": "{} cycles",
    "off_chip_bytes": "{} bytes moved off the chip",
    "on_chip_bytes": "{} bytes held on it",
}


@dataclass(frozen=True)
class ShownProgram:
    """A program of the task with what its verdict says."""

    stage: str  # the last that it came to
    source: str
    message: str


@dataclass(frozen=True)
class TaskStory:
    """One task of a run, from the reference to the program that was kept."""

    task: str
    language: str
    reference: str
    functions: tuple[str, ...]  # that a program may call, where the task file lists them
    ends: tuple[tuple[str, int], ...]  # samples by where they ended: passed first, then the furthest
    nearest: ShownProgram | None  # of those refused; None: there is none
    start: ShownProgram | None  # that rounds made the solution from; None: they made nothing better
    solution: ShownProgram | None  # None: no program is right yet
    costs: tuple[str, ...]  # of the solution, a sentence each
    steps: tuple[ImprovingStep, ...]  # of rounds that make it better, in their order; (): there were none
    origin: str  # model, seed, and what the model is not

    @property
    def judged(self) -> int:
        return sum(count for _, count in self.ends)


def tell_story(store: Store, run: str, name: str) -> TaskStory:
    """Of the task of that name; `run` is a whole id. Raises UsageError for a task that the run has not."""
    task = find_task(store, run, name)
    steps = Counter(  # where samples of optimisation rounds ended, of a run that had nothing to solve
        (row.stage, row.outcome) for row in store.read_steps(run) if row.task == name and row.stage and row.outcome
    )
    ends = sorted((count_stages(store, run, name) or steps).items(), key=_order_end)
    miss = read_refusals(store, run, name).nearest.get(name)
    best = find_best(store, run, task.digest)
    speeds, _ = read_task_speeds(store, run, name)
    improved = find_improvement(read_optimisation(store, run), name)
    return TaskStory(
        task=task.id,
        language=task.target,
        reference=_read_reference(task),
        functions=_list_functions(task),
        ends=tuple((label_of(*end), count) for end, count in ends),
        nearest=_read_program(store, task, miss.sample) if miss is not None else None,
        start=_read_start(store, run, best) if best is not None else None,
        solution=_read_solution(store, task, best) if best is not None else None,
        costs=tuple(f"{speed.figures[0].text} at {speed.sizes}" for speed in speeds),
        steps=improved.steps if improved is not None else (),
        origin=_name_origin(store.read_info(run)),
    )


def _order_end(end: tuple[tuple[Stage, Outcome], int]) -> tuple[bool, float, str]:
    (stage, outcome), _ = end
    return outcome is not Outcome.PASSED, -stage.rank, outcome


def _name_origin(info: RunInfo | None) -> str:
    if info is None:
        return ""
    note = "" if info.is_language_model else f" ({not_a_model(info.model)})"
    return f"model {info.model}{note}, seed {info.seed}"


def _read_start(store: Store, run: str, best: KeptExperience) -> ShownProgram | None:
    task, gain = best.experience.task.digest, best.experience.gain
    starts = (kept.experience.source for kept in store.read_experiences(run) if kept.experience.task.digest == task)
    source = next(starts, best.experience.source)
    if gain is None or source == best.experience.source:
        return None
    return ShownProgram(Stage.MATCH.name, source, f"the kept one is better by a factor of {gain:.3f}, over all sizes")


def _read_solution(store: Store, task: Task, best: KeptExperience) -> ShownProgram:
    """The program that was kept, with the verdict of its sample; one that the run was given has none."""
    if best.sample is not None:
        return _read_program(store, task, best.sample)
    return ShownProgram(Stage.MATCH.name, best.experience.source, "passed before this run")


def _read_program(store: Store, task: Task, sample: str) -> ShownProgram:
    """What a sample counts by."""
    final = next(candidate for candidate in store.read_details([sample])[sample].candidates if candidate.final)
    return ShownProgram(final.verdict.stage.name, final.source or "", explain_message(task, final.verdict.message))


def describe_costs(figures: Mapping[str, Any], task: Task | None = None) -> str:
    """The main figures of a cost model in words; `task`: whose language has figures of its own.

    >>> describe_costs({"cycles": 130, "off_chip_bytes": 2828, "flops": 3535})
    'by the cost model: 130 cycles, 2,828 bytes moved off the chip'
    """
    offers = list_objectives(task) if task is not None else ()
    all_words = {**_FIGURES, **{own.name: f"{{}} {own.unit}" for own in offers if own.name not in _FIGURES}}
    return "by the cost model: " + ", ".join(
        words.format(f"{figures[name]:,}") for name, words in all_words.items() if name in figures
    )


def has_cost_model(task: Task) -> bool:
    """Whether the task's language can say what a program costs without running it."""
    return isinstance(get_target(task.target), Costed)


def _read_reference(task: Task) -> str:
    """The PyTorch text of a task file, or of a problem file; the whole text where it has neither."""
    stated = _read_statement(task)
    if isinstance(stated.get("reference"), str):
        return str(stated["reference"]).rstrip()
    texts = [text for output in _list_mappings(stated, "outputs") for text in output.get("data_transform", ())]
    return "\n".join(str(text).rstrip() for text in texts) or task.prompt_text


def _list_functions(task: Task) -> tuple[str, ...]:
    names = (entry.get("func_name") for entry in _list_mappings(_read_statement(task), "fns"))
    return tuple(str(name) for name in names if name)


def _list_mappings(stated: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    return [entry for entry in stated.get(key) or () if isinstance(entry, dict)]


def _read_statement(task: Task) -> Mapping[str, Any]:
    """What a prompt shows of the task, by key; nothing where that is no YAML mapping."""
    try:
        stated = yaml.safe_load(task.prompt_text)
    except yaml.YAMLError:
        return {}
    return stated if isinstance(stated, dict) else {}
