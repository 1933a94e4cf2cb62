"""What came of zero-shot kernels: do their parameters follow a size that is told, and are they right and fast there?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opsmith.models.roles import shorten_model
from opsmith.report.record import COUNT, RATIO, SHARE, TEXT, DataTable, Value
from opsmith.results.intervals import bound_share
from opsmith.targets.programs import PARAMETERS
from opsmith_lab.evaluation.analysis import Analysis, Chart, Row
from opsmith_lab.evaluation.learners import PREFIX
from opsmith_lab.evaluation.measure import MeanEstimate, average_shares, average_tasks
from opsmith_lab.evaluation.permutation import (
    PermutationResult,
    adjust_ps,
    permute_columns,
    permute_labels,
    permute_signs,
)
from opsmith_lab.evaluation.repetition import LEVEL
from opsmith_lab.study.controls import TunedKernel
from opsmith_lab.study.kernels import KernelSample, KernelSamples, Parameters
from opsmith_lab.study.size_minds import FOLLOWED, PLANTED, RIGHT, SIZE, TELLING, TEMPERATURE
from opsmith_lab.study.sizes import COMMON, KERNELS, TOLD, UNCOMMON, UNTOLD, KernelCell, Sizes, name_sizes

FAST = "fast"
CONTROL = "control"  # in place of a model's name
INTERVALS = (
    "Ratios are the plain program's time by the program's: above 1 it is faster. Brackets hold 95 % intervals: of "
    "shares and of means of ratios over kernels and sizes; of one program's ratio over its timed pairs. p is of "
    "permutation tests."
)
Test = tuple[str, ...]
PUBLISHED: Mapping[str, tuple[Test, ...]] = {  # what the study's public summary says, and the tests that ask the same
    "input size told has no measurable effect": ((TELLING,), (RIGHT, "told less untold"), (FAST, "told less untold")),
    "kernel parameters are the same irrespective of size": ((SIZE, TOLD),),
    "... and of temperature": ((TEMPERATURE, TOLD), (TEMPERATURE, UNTOLD)),
    "performance is sharply worse at uncommon sizes": ((FAST,), (RIGHT,)),
}
Name = tuple[str, str]  # model or CONTROL, and language; of a control its arm and language


@dataclass(frozen=True)
class TransferTest:
    """Were programs that were made for a size faster there than those made for others?"""

    name: Name
    gain: float  # by how much, a factor
    result: PermutationResult


def analyse_kernels(
    models: Sequence[KernelSamples],
    tuned: Sequence[TunedKernel],
    transfers: Mapping[Name, Sequence[Sequence[Sequence[float | None]]]],
    notes: Sequence[str],
) -> Analysis:
    """`transfers`: for each kernel, ratios [size][program made for a size]."""
    groups = {(answers.model, name): _select(answers, name) for answers in models for name in _list_languages(answers)}
    tests = {name: list_tests(samples) for name, samples in groups.items()}
    rows = [row for answers in models for row in _list_rows(answers)] + list(_list_tuned_rows(tuned))
    moved = [each for name, matrices in transfers.items() if (each := compare_transfers(name, matrices)) is not None]
    tables = [
        _tabulate_planted(tests),
        _tabulate_tests(tests),
        DataTable(
            "Is a program that was made for a size faster there?",
            {"model": TEXT, "language": TEXT, "times as fast as those made for other sizes": RATIO, "p": TEXT},
            [(shorten_model(each.name[0]), each.name[1], each.gain, str(each.result)) for each in moved],
        ),
        _tabulate_kinds(rows),
        _tabulate_parameters(groups),
        _tabulate_typical(models, tuned),
        _tabulate_builds(models),
        _tabulate_published(tests),
    ]
    figures = {"-information": _draw_information(tests), "-kinds": _draw_kinds(rows)}
    figures |= {f"-{name}": _draw_numbers(groups, name) for name in dict.fromkeys(place[1] for place in groups)}
    figures = {suffix: chart for suffix, chart in figures.items() if chart.points}
    return Analysis(_say_finding(tests, moved), rows, tables, figures, [*_NOTES, *notes], INTERVALS)


_NOTES = (
    "information of sizes and parameters, in bits: how much a size says of the parameters of right programs, less what "
    "sizes that are dealt out at random would say; by kernel and temperature. Of temperatures by kernel and size, of "
    "telling by all three",
    "parameters of a program are read from its text by its language's parser: "
    + "; ".join(f"{kind}: {words}" for kind, words in PARAMETERS.items()),
    "p (Holm): of all tests of one model in one language; found: below 0.05",
    "typical: the right program of a cell that is nearest to all others by its parameters, that is by the share of "
    "numbers that two programs do not have in common",
    "made for its size: screens of the programs chosen for each size, at all sizes of their kernel, made anew; p by "
    "dealing programs out to sizes",
)


# -- tests


def list_tests(samples: Sequence[KernelSample]) -> dict[Test, PermutationResult]:
    """All tests of one model in one language."""
    right, rng = [sample for sample in samples if sample.is_right], np.random.default_rng(0)
    prompts = [each for each in (TOLD, UNTOLD) if any(sample.cell.prompt == each for sample in samples)]
    tests: dict[Test, PermutationResult] = {}
    for prompt in prompts:
        own = [sample for sample in right if sample.cell.prompt == prompt]
        tests[SIZE, prompt] = _test_labels(own, _size, _kernel_and_temperature, rng)
        for kind in (COMMON, UNCOMMON) if prompt == TOLD else ():
            of_kind = [sample for sample in own if sample.cell.kind == kind]
            tests[SIZE, prompt, kind] = _test_labels(of_kind, _size, _kernel_and_temperature, rng)
        for name in PARAMETERS if prompt == TOLD else ():
            if any(name in dict(sample.parameters) for sample in own):
                tests[SIZE, prompt, name] = _test_labels(own, _size, _kernel_and_temperature, rng, name)
        tests[TEMPERATURE, prompt] = _test_labels(own, lambda c: c.temperature, lambda c: (c.kernel, c.sizes), rng)
    if len(prompts) == 2:
        tests[TELLING,] = _test_labels(
            right, lambda cell: cell.prompt, lambda cell: (cell.kernel, cell.sizes, cell.temperature), rng
        )
    pairs = dict.fromkeys((sample.cell.kernel, sample.cell.sizes) for sample in samples)
    places: list[dict[str, Hashable]] = [{"kernel": kernel, "sizes": sizes} for kernel, sizes in pairs]
    for words, measure in ((RIGHT, share_right), (FAST, average_speed)):
        differences = [
            [measure(samples, {**where, "prompt": TOLD}), measure(samples, {**where, "prompt": UNTOLD})]
            for where in places
        ]
        tests[words, "told less untold"] = _test_pairs(differences, rng)
        kinds = [
            [measure(samples, {"kernel": kernel, "sizes": size, "prompt": prompts[0]}) for size in pair]
            for kernel, pair in _list_pairs(samples)
        ]
        tests[words,] = _test_pairs([pair[::-1] for pair in kinds], rng)
    return tests


def _test_labels(
    samples: Sequence[KernelSample],
    label: Callable[[KernelCell], Hashable],
    stratum: Callable[[KernelCell], Hashable],
    rng: np.random.Generator,
    kind: str = "",
) -> PermutationResult:
    strata: dict[Hashable, tuple[list[Hashable], list[Hashable]]] = {}
    for sample in samples:
        labels, values = strata.setdefault(stratum(sample.cell), ([], []))
        labels.append(label(sample.cell))
        values.append(dict(sample.parameters).get(kind) if kind else sample.parameters)
    return permute_labels(list(strata.values()), rng)


def _size(cell: KernelCell) -> Sizes:
    return cell.sizes


def _kernel_and_temperature(cell: KernelCell) -> tuple[str, float]:
    return cell.kernel, cell.temperature


def _test_pairs(pairs: Iterable[Sequence[float | None]], rng: np.random.Generator) -> PermutationResult:
    differences = [first - second for first, second in pairs if first is not None and second is not None]
    return permute_signs(differences, rng)


def share_right(samples: Iterable[KernelSample], where: Mapping[str, Hashable]) -> float | None:
    """Of the samples of cells that have these values; None: there is none."""
    own = [sample.is_right for sample in samples if _is_at(sample, where)]
    return sum(own) / len(own) if own else None


def average_speed(samples: Iterable[KernelSample], where: Mapping[str, Hashable]) -> float | None:
    """The mean logarithm of their screened ratios; None: there is none."""
    own = [sample.screen.ratio for sample in samples if sample.screen is not None and _is_at(sample, where)]
    logs = [math.log(ratio) for ratio in own if ratio]
    return math.fsum(logs) / len(logs) if logs else None


def _is_at(sample: KernelSample, where: Mapping[str, Hashable]) -> bool:
    return all(getattr(sample.cell, name) == value for name, value in where.items())


def _list_pairs(samples: Iterable[KernelSample]) -> Iterator[tuple[str, tuple[Sizes, Sizes]]]:
    """Every common size with the uncommon one beside it."""
    places = {(sample.cell.kernel, sample.cell.sizes) for sample in samples}
    for kernel, sizes in KERNELS.items():
        for pair in zip(sizes[::2], sizes[1::2], strict=True):
            if all((kernel, each) in places for each in pair):
                yield kernel, pair


def compare_transfers(name: Name, matrices: Sequence[Sequence[Sequence[float | None]]]) -> TransferTest | None:
    """None: nothing was timed, or all sizes have the same program."""
    tables = [-np.log(np.array(rows, float)) for rows in matrices if all(value for row in rows for value in row)]
    tables = [table for table in tables if len(table) > 1]
    if not tables:
        return None
    gains = [(table.sum(axis=1) - table.diagonal()) / (len(table) - 1) - table.diagonal() for table in tables]
    gain = float(np.exp(np.concatenate(gains).mean()))
    return TransferTest(name, gain, permute_columns(tables, np.random.default_rng(0)))


# -- numbers


def _list_languages(answers: KernelSamples) -> list[str]:
    return list(dict.fromkeys(sample.cell.language for sample in answers.samples))


def _select(answers: KernelSamples, language: str) -> list[KernelSample]:
    return [sample for sample in answers.samples if sample.cell.language == language]


def _list_rows(answers: KernelSamples) -> Iterator[Row]:
    """Right and fast by size and by kind of size, and how often each kind of parameter has which numbers."""
    for language in _list_languages(answers):
        for prompt in dict.fromkeys(sample.cell.prompt for sample in _select(answers, language)):
            arm, samples = f"{language}, {prompt}", [s for s in _select(answers, language) if s.cell.prompt == prompt]
            typical = [t for t in answers.typical if (t.cell.language, t.cell.prompt) == (language, prompt)]
            places = list(dict.fromkeys(sample.cell.place for sample in samples))
            by_place = {place: [s for s in samples if s.cell.place == place] for place in places}
            for place, own in by_place.items():
                share = sum(sample.is_right for sample in own) / len(own)
                estimate = MeanEstimate(share, *bound_share(share, len(own)), 1, len(own))
                yield Row(answers.model, arm, "right", place, estimate)
                for kind in PARAMETERS:
                    yield from _count_numbers(answers.model, arm, kind, place, own)
            for kind in (COMMON, UNCOMMON):
                shares = {
                    place: sum(s.is_right for s in own) / len(own)
                    for place, own in by_place.items()
                    if own[0].cell.kind == kind
                }
                ratios = {
                    f"{t.cell.place} {t.cell.temperature}": t.ratio.ratio
                    for t in typical
                    if t.cell.kind == kind and t.ratio.ratio is not None
                }
                yield Row(answers.model, arm, "right", kind, average_shares([shares]))
                yield Row(
                    answers.model, arm, "ratio to plain, typical", kind, average_tasks([ratios], is_geometric=True)
                )
            for each in (each for each in typical if each.ratio.ratio is not None):
                measure = f"ratio to plain, typical at {each.cell.temperature}"
                yield Row(answers.model, arm, measure, each.cell.place, each.ratio.estimate)


def _count_numbers(model: str, arm: str, kind: str, place: str, samples: Sequence[KernelSample]) -> Iterator[Row]:
    """The histogram of a parameter at a size."""
    right = [sample for sample in samples if sample.is_right]
    counts = Counter(dict(sample.parameters).get(kind) for sample in right)
    for numbers, count in counts.items():
        if numbers is not None:
            share = count / len(right)
            estimate = MeanEstimate(share, *bound_share(share, len(right)), 1, len(right))
            yield Row(model, arm, f"{kind} {say_numbers(numbers)}", place, estimate)


def _list_tuned_rows(tuned: Sequence[TunedKernel]) -> Iterator[Row]:
    for each in tuned:
        arm = f"{each.cell.language}, {each.arm}"
        yield Row(CONTROL, arm, "ratio to plain, best", each.cell.place, each.ratio.estimate)
    for language, arm in dict.fromkeys((each.cell.language, each.arm) for each in tuned):
        for kind in (COMMON, UNCOMMON):
            ratios = {
                each.cell.place: each.ratio.ratio
                for each in tuned
                if (each.cell.language, each.arm, each.cell.kind) == (language, arm, kind) and each.ratio.ratio
            }
            estimate = average_tasks([ratios], is_geometric=True)
            yield Row(CONTROL, f"{language}, {arm}", "ratio to plain, best", kind, estimate)


def say_numbers(numbers: Sequence[int]) -> str:
    return "+".join(map(str, numbers))


def say_parameters(parameters: Parameters) -> str:
    """`tile 4+32, unroll 4`; without any: `none`."""
    return ", ".join(f"{kind} {say_numbers(numbers)}" for kind, numbers in parameters) or "none"


# -- what is shown


def adjust_tests(tests: Mapping[Test, PermutationResult]) -> dict[Test, float]:
    return dict(zip(tests, adjust_ps([result.p for result in tests.values()]), strict=True))


def _say_finding(tests: Mapping[Name, Mapping[Test, PermutationResult]], moved: Sequence[TransferTest]) -> str:
    sentences = []
    for name, own in tests.items():
        adjusted = adjust_tests(own)
        followed = [", ".join(test) for test, p in adjusted.items() if p < LEVEL and len(test) < 3]
        sentences.append(f"{shorten_model(name[0])} in {name[1]}: {' and '.join(followed) or 'nothing'} found")
    for each in moved:
        if each.name[0] == CONTROL:
            sentences.append(f"{each.name[1]}: {each.gain:.2f} times as fast where it was tuned ({each.result})")
    return "; ".join(sentences) or "nothing was asked"


def _tabulate_planted(tests: Mapping[Name, Mapping[Test, PermutationResult]]) -> DataTable:
    """Known minds: what must be found, beside what was."""
    lines: list[tuple[Value, ...]] = []
    for (model, language), own in tests.items():
        planted = PLANTED.get(model.rpartition("/")[2]) if PREFIX in model else None
        if planted is None:
            continue
        adjusted = adjust_tests(own)
        checked = [test for test in own if (test[0] in FOLLOWED and test[-1] not in PARAMETERS) or test == (RIGHT,)]
        wrong = [", ".join(test) for test in checked if (adjusted[test] < LEVEL) != (test in planted)]
        words = "; ".join(sorted(", ".join(test) for test in planted)) or "nothing"
        lines.append((shorten_model(model), language, words, len(checked) - len(wrong), len(checked), "; ".join(wrong)))
    columns = {"mind": TEXT, "language": TEXT, "planted": TEXT, "as planted": COUNT, "of": COUNT, "not": TEXT}
    return DataTable("Known minds: was what is planted found, and nothing else?", columns, lines)


def _tabulate_tests(tests: Mapping[Name, Mapping[Test, PermutationResult]]) -> DataTable:
    lines: list[tuple[Value, ...]] = []
    for (model, language), own in tests.items():
        adjusted = adjust_tests(own)
        for test, result in own.items():
            name = ", ".join(test) if len(test) > 1 or test[0] == TELLING else f"{test[0]}, uncommon less common"
            unit = "bits" if test[0] in FOLLOWED else "share" if test[0] == RIGHT else "log ratio"
            number = f"{result.statistic:z.3f} {unit}"
            lines.append((shorten_model(model), language, name, number, str(result), f"{adjusted[test]:.3f}"))
    columns = dict.fromkeys(("model", "language", "test", "information or difference", "p", "p (Holm)"), TEXT)
    return DataTable("Do parameters follow the size? Are programs right and fast there?", columns, lines)


def _tabulate_published(tests: Mapping[Name, Mapping[Test, PermutationResult]]) -> DataTable:
    """The claims beside what the same question is answered with here, for every model."""
    lines = []
    for claim, questions in PUBLISHED.items():
        for (model, language), own in tests.items():
            results = [
                f"{', '.join(test)}: {own[test].statistic:z.3f}, {own[test]}" for test in questions if test in own
            ]
            lines.append((claim, shorten_model(model), language, "; ".join(results)))
    columns = dict.fromkeys(("claim of the study", "model", "language", "here"), TEXT)
    return DataTable("What the study claims, and the same tests here", columns, lines)


def _tabulate_kinds(rows: Sequence[Row]) -> DataTable:
    cells = {(row.model, row.arm, row.measure.partition(",")[0], row.of): row.estimate for row in rows}
    names = dict.fromkeys((row.model, row.arm) for row in rows)
    units = {"right": SHARE, "ratio to plain": RATIO}
    places = [(measure, kind) for measure in units for kind in (COMMON, UNCOMMON)]
    lines = [(shorten_model(name[0]), name[1], *(cells.get((*name, *place)) for place in places)) for name in names]
    columns: dict[str, str] = {"model": TEXT, "language and prompt": TEXT}
    columns |= {f"{measure}, {kind}": units[measure] for measure, kind in places}
    return DataTable("Right and fast: common and uncommon sizes", columns, lines)


def _tabulate_parameters(groups: Mapping[Name, Sequence[KernelSample]]) -> DataTable:
    """The commonest parameters at every size, told."""
    lines: list[tuple[Value, ...]] = []
    width = 0
    for (model, language), samples in groups.items():
        for kernel in dict.fromkeys(sample.cell.kernel for sample in samples):
            right = [s for s in samples if s.is_right and s.cell.kernel == kernel and s.cell.prompt == TOLD]
            cells = []
            for sizes in dict.fromkeys(sample.cell.sizes for sample in right):
                counts = Counter(sample.parameters for sample in right if sample.cell.sizes == sizes)
                ((parameters, count),) = counts.most_common(1)
                cells.append(f"{name_sizes(sizes)}: {say_parameters(parameters)} ({count}/{counts.total()})")
            width = max(width, len(cells))
            lines.append((shorten_model(model), language, kernel, *cells))
    padded = [(*line, *[""] * (width + 3 - len(line))) for line in lines]
    columns = dict.fromkeys(("model", "language", "kernel", *(f"size {place + 1}" for place in range(width))), TEXT)
    return DataTable("The commonest parameters where the size is told", columns, padded)


def _tabulate_typical(models: Sequence[KernelSamples], tuned: Sequence[TunedKernel]) -> DataTable:
    """Fully graded ratios by size: of each model's typical told programs at the middle temperature, and of controls."""
    cells: dict[tuple[str, str], dict[str, MeanEstimate | None]] = {}
    for answers in models:
        for each in answers.typical:
            if each.cell.prompt == TOLD and each.cell.temperature == 0.5:
                own = cells.setdefault((each.cell.language, each.cell.place), {})
                own[shorten_model(answers.model)] = each.ratio.estimate
    for control in tuned:
        cells.setdefault((control.cell.language, control.cell.place), {})[control.arm] = control.ratio.estimate
    names = list(dict.fromkeys(name for own in cells.values() for name in own))
    lines = [(*place, *map(own.get, names)) for place, own in cells.items() if any(own.values())]
    columns = {"language": TEXT, "kernel and size": TEXT, **dict.fromkeys(names, RATIO)}
    return DataTable("Ratio to plain, full grade: typical programs (told, 0.5), and the controls' best", columns, lines)


def _tabulate_builds(models: Sequence[KernelSamples]) -> DataTable:
    """What compilers say of typical programs: where there is no time, this is all."""
    lines = {
        (
            shorten_model(answers.model),
            each.cell.language,
            each.cell.kernel,
            say_parameters(each.parameters),
            " ".join(each.build.split())[:300],
        )
        for answers in models
        for each in answers.typical
        if each.build and each.ratio.ratio is None
    }
    columns = dict.fromkeys(("model", "language", "kernel", "parameters", "what its compiler says"), TEXT)
    return DataTable("Resources of typical programs", columns, sorted(lines))


def _draw_information(tests: Mapping[Name, Mapping[Test, PermutationResult]]) -> Chart:
    points = [
        {"x": f"{shorten_model(name[0])}, {name[1]}", "series": prompt, "y": own[SIZE, prompt].statistic}
        for name, own in tests.items()
        for prompt in (TOLD, UNTOLD)
        if (SIZE, prompt) in own
    ]
    words = {"title": "What the size says of parameters", "x_title": "model", "y_title": "bits beyond chance"}
    return Chart("bars", points, {**words, "width": 672})


def _draw_kinds(rows: Sequence[Row]) -> Chart:
    points = [
        {"x": f"{shorten_model(row.model)}, {row.arm}", "series": row.of, **row.scale_ends()}
        for row in rows
        if row.of in (COMMON, UNCOMMON) and row.measure.startswith("ratio") and row.estimate and UNTOLD not in row.arm
    ]
    words = {"title": "How fast, at common and uncommon sizes", "x_title": "model", "y_title": "ratio to plain"}
    return Chart("bars", points, {**words, "width": 672}, ("over kernels, sizes and temperatures",))


def _draw_numbers(groups: Mapping[Name, Sequence[KernelSample]], language: str) -> Chart:
    """The product of a program's tiles and blocks by the number N that it was told, mean logarithm."""
    points = []
    for (model, own_language), samples in groups.items():
        means: dict[int, list[float]] = {}
        for sample in samples if own_language == language else ():
            if sample.is_right and sample.cell.prompt == TOLD:
                numbers = [n for kind in ("tile", "block") for n in dict(sample.parameters).get(kind, ())]
                means.setdefault(dict(sample.cell.sizes)["N"], []).append(math.log2(math.prod(numbers)))
        series = shorten_model(model)
        points += [{"x": n, "series": series, "y": float(np.mean(logs))} for n, logs in sorted(means.items())]
    words = {"title": f"Tiles and blocks by the size that is told, {language}", "x_title": "N", "log_x": True}
    return Chart("lines", points, {**words, "y_title": "log2 of their product, mean", "width": 672})
