"""The studies by name: from what a command line says to pages, and what they would ask and cost."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from opsmith.config import resolve_settings
from opsmith.devices.lease import BusyError
from opsmith.errors import UsageError
from opsmith.forecast.forecast import Forecast
from opsmith.forecast.prices import bill_requests
from opsmith.measuring.record import MeasuringGrade
from opsmith.models import ChatModel
from opsmith.models.table import get_model
from opsmith.models.tokens import MESSAGE_TOKENS, estimate_tokens
from opsmith.settings import Settings
from opsmith_lab.evaluation.analysis import ExperimentReport
from opsmith_lab.evaluation.catalogue import list_folders
from opsmith_lab.evaluation.charts import KNOWN_MINDS
from opsmith_lab.evaluation.files import ConductedExperiment, publish_results
from opsmith_lab.evaluation.learners import PREFIX
from opsmith_lab.evaluation.plan import ExperimentOptions
from opsmith_lab.study import STUDIES
from opsmith_lab.study.arms import BUDGET, ScriptedArm, Walk, seed_search
from opsmith_lab.study.chat import SCRIPTS, answer_as_mind
from opsmith_lab.study.controls import CONTROLS, TunedKernel, tune_kernel
from opsmith_lab.study.instruments import analyse_proof
from opsmith_lab.study.kernels import MAX_TOKENS as KERNEL_TOKENS
from opsmith_lab.study.kernels import (
    KernelSample,
    KernelSamples,
    ask_kernels,
    find_medoid,
    grade_typical,
    make_request,
    read_samples,
    transfer_programs,
)
from opsmith_lab.study.optimisers import OPTIMISERS
from opsmith_lab.study.problems import SETS
from opsmith_lab.study.proof import prove_instruments
from opsmith_lab.study.recording import OnProgress
from opsmith_lab.study.searching import (
    MAX_TOKENS,
    SearchPlan,
    name_recording,
    name_versions,
    search_classically,
    search_with_model,
)
from opsmith_lab.study.size_minds import MIND_WORDS, SizeMind
from opsmith_lab.study.sizes import KERNELS, SAMPLES, SIZE_SETS, TOLD, UNTOLD, KernelCell, Sizes, find_task, list_cells
from opsmith_lab.study.study1 import OPTIMISER, UNTESTED, analyse_searches
from opsmith_lab.study.study2 import CONTROL, analyse_kernels
from opsmith_lab.study.synthetic import draw_surfaces, hash_surfaces
from opsmith_lab.study.trajectory import BlackBox
from opsmith_lab.study.workbench import Workbench

CLASSICAL = ("random", "quasi-random", "greedy", "cma", "tpe", "gp")
LARGE, FEW = ("bbob-2d", "bbob-5d", "synthetic", "physical"), ("few",)
SEEDS = (0, 1, 2, 3, 4)
MINDS_AT_ONCE = 8


@dataclass(frozen=True)
class KernelPlan:
    """Which kernels are asked for and searched."""

    languages: tuple[str, ...]
    prompts: tuple[str, ...]  # (): no model is asked
    controls: tuple[str, ...]
    cells: tuple[KernelCell, ...]
    samples: int  # of each cell, and builds of each search
    grades: frozenset[MeasuringGrade]  # in which programs are timed

    @property
    def places(self) -> list[KernelCell]:
        """One cell for each language, kernel and size."""
        return list({(cell.language, cell.place): cell for cell in self.cells}.values())


@dataclass(frozen=True)
class StudyOrder:
    """What the command line asks of a study."""

    options: ExperimentOptions
    arms: tuple[str, ...]
    sets: tuple[str, ...]
    folder: Path  # what is kept between two starts
    languages: tuple[str, ...] = ()

    def plan_searches(self) -> tuple[SearchPlan, SearchPlan]:
        """Of the optimisers, and of the chat arms: these search the set `few` once, unless more is asked for."""
        models, seeds = self.options.models, self.options.seeds
        arms = self.arms or (*CLASSICAL, *(SCRIPTS if models else ()))
        _check_names("--arms", arms, (*OPTIMISERS, *SCRIPTS))
        sets = self.sets or (FEW if models else LARGE)
        _check_names("--sets", sets, SETS)
        asking = tuple(arm for arm in arms if arm in SCRIPTS)
        if asking and not models:
            raise UsageError(f"--arms: given {asking[0]}, which asks a chat model; expected --model too")
        own = tuple(arm for arm in arms if arm in OPTIMISERS)
        return SearchPlan(own, sets, seeds or SEEDS), SearchPlan(asking, sets, seeds or SEEDS[:1])

    def plan_kernels(self) -> KernelPlan:
        """Without a model the controls alone, of all languages that are timed here."""
        arms = self.arms or (*((TOLD, UNTOLD) if self.options.models else ()), *CONTROLS)
        _check_names("--arms", arms, (TOLD, UNTOLD, *CONTROLS))
        prompts = tuple(arm for arm in arms if arm in (TOLD, UNTOLD))
        if bool(prompts) != bool(self.options.models):
            raise UsageError(f"--arms: given {', '.join(arms)}; expected {TOLD} or {UNTOLD} with --model, no other way")
        _check_names("--sets", self.sets, SIZE_SETS)
        if len(self.sets) > 1:
            raise UsageError(f"--sets: given {', '.join(self.sets)}; expected one of {', '.join(SIZE_SETS)}")
        _check_names("--tasks", self.options.tasks, KERNELS)
        kernels = tuple(self.options.tasks) or tuple(KERNELS)
        languages = self.languages or ("c",)
        number = SIZE_SETS[self.sets[0] if self.sets else "ten"]
        cells = tuple(list_cells(languages, kernels, number, prompts or (TOLD,)))
        controls = tuple(arm for arm in arms if arm in CONTROLS)
        grades = {"none": (), "screen": (MeasuringGrade.SCREEN,), "full": tuple(MeasuringGrade)}
        timed = frozenset(grades[self.options.where.get("measure", "full")])
        return KernelPlan(languages, prompts, controls, cells, self.options.samples or SAMPLES, timed)

    def make_model(self, name: str, languages: Sequence[str]) -> ChatModel:
        if name.startswith(PREFIX):
            return SizeMind(name.removeprefix(PREFIX), languages)
        return get_model(self.settle_model(name))

    def settle_model(self, name: str) -> Settings:
        """The settings that one of the models is made from."""
        stated = {"model": name, "base_url": self.options.base_url, **self.options.where}
        return resolve_settings(None, {key: value for key, value in stated.items() if value is not None})

    def write_command(self, name: str) -> str:
        """The command that makes these results again."""
        words = [f"opsmith experiment {name}", *(f"--model {model}" for model in self.options.models)]
        words += ["--base-url URL"] if self.options.base_url is not None else []
        words += [f"--arms {','.join(self.arms)}"] if self.arms else []
        words += [f"--sets {','.join(self.sets)}"] if self.sets else []
        words += [f"--language {','.join(self.languages)}"] if self.languages else []
        words += [f"--tasks {','.join(self.options.tasks)}"] if self.options.tasks else []
        words += [f"--samples {self.options.samples}"] if self.options.samples is not None else []
        words += [f"--measure {self.options.where['measure']}"] if "measure" in self.options.where else []
        return " ".join([*words, *(f"--seed {seed}" for seed in self.options.seeds)])


def conduct_study1(
    order: StudyOrder, results: Path, max_cost: float | None, on_progress: OnProgress
) -> ConductedExperiment:
    """All searches that are not there yet, and the page of all that are."""
    own, asking = order.plan_searches()
    models = [get_model(order.settle_model(name)) for name in order.options.models]  # a wrong one is said first
    searches, seconds, stopped = search_classically(own, order.folder, on_progress)
    cost = 0.0
    for model in models if asking.arms and not stopped else ():
        file = name_recording(order.folder, model.name, order.options.base_url)
        concurrency = order.settle_model(model.name).provider.concurrency
        left = None if max_cost is None else max_cost - cost
        chats, recording = search_with_model(asking, model, file, concurrency, left, on_progress)
        searches += chats.done
        cost += recording.usage.cost_usd or 0.0
        stopped = stopped or chats.stopped
    if not searches:
        return ConductedExperiment("study1", stopped, cost, ("study1: no search was finished",), {})
    versions = ", ".join(f"{package} {version}" for package, version in name_versions().items())
    notes = (
        "GP has two seeds at most: a search takes it more than a second",
        f"synthetic functions: sha256 of their numbers {hash_surfaces(draw_surfaces())}",
        f"made with {versions}",
    )
    arms = (*own.arms, *asking.arms)
    searches.sort(key=lambda each: (each.model, arms.index(each.arm)))
    boxes = {each.box.name: each.box for each in searches}
    problems, power = list(boxes), describe_power(results, count_alike(boxes.values()))
    analysis = analyse_searches(searches, seconds, [*notes, power] if power != UNTESTED else notes)
    seeds = sorted({each.seed for each in searches})
    of_arms = {arm: sorted({each.seed for each in searches if each.arm == arm}) for arm in arms}
    fewer = [f"{arm}: {', '.join(map(str, own))}" for arm, own in of_arms.items() if own and own != seeds]
    size = f"{len(problems)} problems, {len(searches):,} searches of {BUDGET} evaluations"
    report = ExperimentReport(
        "study1",
        STUDIES["study1"],
        "Proposals one after another, from the bounds and the values of earlier ones alone: how good they are, and "
        "whether they change with what the values say.",
        f"{size}; seeds {', '.join(map(str, seeds))}" + f" ({'; '.join(fewer)})" * bool(fewer),
        (OPTIMISER, *(model.name for model in models)),
        seeds,
        problems,
        len(searches),
        "" if models else "optimisers alone; no language model was asked",
        (OPTIMISER, *(model.name for model in models if not model.is_language_model)),
        stopped,
    )
    return publish_results(results, report, analysis, order.write_command("study1"), cost)


def describe_power(results: Path, alike: int) -> str:
    """How often known minds are found to adapt on so many problems of one domain, by the page of the instruments."""
    if alike < 2:
        return UNTESTED
    files = [place / "instruments.json" for place in (results, *(folder / "results" for folder in list_folders()))]
    if (file := next((file for file in files if file.is_file()), None)) is None:
        return "power of the test of adaptation: opsmith experiment instruments"
    points = json.loads(file.read_text("utf-8"))["figures"]["-power"]["points"]
    points = [each for each in points if each["series"].startswith("adaptation of searcher") and each["x"] <= alike]
    size = max((each["x"] for each in points), default=0)
    found = ", ".join(f"{each['y']:.2f} of {each['series'].split()[-1]}" for each in points if each["x"] == size)
    if not found:
        return f"power of the test of adaptation: the instruments were not tried on as few as {alike} problems"
    return f"power, with {size} problems of one domain: p < 0.05 in a share {found} (instruments)"


def count_alike(boxes: Iterable[BlackBox]) -> int:
    """Problems of the largest group that look alike: of one set, with the same bounds."""
    return max(Counter((box.collection, box.domain) for box in boxes).values())


def foresee_power(order: StudyOrder, results: Path) -> tuple[str, ...]:
    """What the test of adaptation could find on the problems that are planned for chat models."""
    boxes = order.plan_searches()[1].boxes
    return (describe_power(results, count_alike(boxes)),) if order.options.models else ()


def forecast_study1(order: StudyOrder) -> tuple[Forecast, ...]:
    """What chat models would be asked; the prompts are those of a search whose replies are drawn at random."""
    _, plan = order.plan_searches()
    boxes = {box.domain.dimension: box for box in plan.boxes}
    forecasts = []
    for name in order.options.models:
        settings = order.settle_model(name)
        for arm in plan.arms:
            of_one = {size: list(_try_search(arm, box)) for size, box in boxes.items()}
            for seed in plan.seeds:
                pairs = [pair for box in plan.boxes for pair in of_one[box.domain.dimension]]
                requests, read = len(pairs), sum(tokens for tokens, _ in pairs)
                written = sum(tokens for _, tokens in pairs)
                expected, most = (
                    replace(bill_requests(settings, 1, *tokens), requests=number)  # those of all, as if it were one
                    for number, tokens in (
                        (requests, (read, written)),
                        (2 * requests, (2 * read + 30 * requests, 2 * requests * MAX_TOKENS)),
                    )
                )
                forecasts.append(Forecast(arm, name, seed, expected, None, most, None, expected, ()))
    return tuple(forecasts)


def _try_search(arm: str, box: BlackBox) -> Iterator[tuple[int, int]]:
    """Tokens of every prompt and reply of a search in which a reciter answers."""
    mind = ScriptedArm(SCRIPTS[arm](box.domain, 0))
    walk = Walk(box, mind)
    while (enquiry := walk.go_on()) is not None:
        reply = answer_as_mind("reciter", enquiry.user, seed_search(enquiry.user))
        yield (
            estimate_tokens(enquiry.system) + estimate_tokens(enquiry.user) + 2 * MESSAGE_TOKENS,
            estimate_tokens(reply),
        )
        mind.hear_reply(reply)


def conduct_instruments(
    order: StudyOrder, results: Path, max_cost: float | None, on_progress: OnProgress
) -> ConductedExperiment:
    """The instruments on the known minds; nothing is asked and nothing kept."""
    if order.arms or order.sets or order.options.models:
        raise UsageError("instruments: given --arms, --sets or --model; expected none: minds and problems are fixed")
    on_progress("six minds on 96 problems, and 2,000 repetitions of each null test: some minutes")
    analysis = analyse_proof(prove_instruments())
    report = ExperimentReport(
        "instruments",
        STUDIES["instruments"],
        "Tests and measures are trusted where they find what was planted, and nothing else.",
        "6 minds, 96 synthetic problems, 12 searches of each; seed 0",
        ("minds",),
        (0,),
        (),
        6 * 96 * 12,
        "programs with planted behaviour; no language model was asked",
        ("minds",),
    )
    return publish_results(results, report, analysis, order.write_command("instruments"), 0.0)


@dataclass
class KernelWork:
    """What study2 has so far."""

    models: list[KernelSamples] = field(default_factory=list)
    tuned: list[TunedKernel] = field(default_factory=list)
    transfers: dict[tuple[str, str], list[list[list[float | None]]]] = field(default_factory=dict)
    stopped: str = ""
    cost: float = 0.0


def conduct_study2(
    order: StudyOrder, results: Path, max_cost: float | None, on_progress: OnProgress
) -> ConductedExperiment:
    """All kernels that are not there yet, and the page of all that are."""
    plan, began, work = order.plan_kernels(), time.monotonic(), KernelWork()
    models = [order.make_model(name, plan.languages) for name in order.options.models]
    with Workbench(order.folder / "study2", on_progress, plan.grades) as bench:
        for language in plan.languages:
            bench.refuse_unready(language)
        try:
            for model in models:
                _ask_model(order, plan, model, bench, work, None if max_cost is None else max_cost - work.cost)
            _search_kernels(plan, bench, work)
        except (BusyError, KeyboardInterrupt) as error:
            work.stopped = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
    models_read, tuned = work.models, work.tuned
    if not models_read and not tuned:
        return ConductedExperiment("study2", work.stopped, work.cost, ("study2: nothing was finished",), {})
    number, seconds = sum(len(answers.samples) for answers in models_read), time.monotonic() - began
    minds = [answers.model.removeprefix(PREFIX) for answers in models_read if answers.model.startswith(PREFIX)]
    notes = [f"this start took {seconds:.0f} s; what earlier ones had asked, judged and timed was kept"]
    notes += [f"{mind}: {MIND_WORDS[mind]}" for mind in minds]
    words = KNOWN_MINDS if minds else "searches alone; no model was asked"
    size = f"{len(plan.places)} kernels with their sizes in {', '.join(plan.languages)}; {number:,} samples, "
    size += f"{plan.samples} of each size, prompt and temperature; {len(tuned)} searches of {plan.samples} builds"
    report = ExperimentReport(
        "study2",
        STUDIES["study2"],
        "Softmax, matrix product and layer norm, asked for without any feedback, in two prompts that differ in one "
        "sentence: the size. Do the numbers by which programs divide their work follow it?",
        f"{size}; timed on {bench.device.name or 'this processor'}",
        (*(answers.model for answers in models_read), *([CONTROL] if tuned else [])),
        (0,),
        list(dict.fromkeys(cell.kernel for cell in plan.cells)),
        number,
        words if len(minds) == len(models_read) else "",
        (CONTROL, *(answers.model for answers in models_read if not answers.is_language_model)),
        work.stopped,
    )
    analysis = analyse_kernels(models_read, tuned, work.transfers, notes)
    return publish_results(results, report, analysis, order.write_command("study2"), work.cost)


def _ask_model(
    order: StudyOrder, plan: KernelPlan, model: ChatModel, bench: Workbench, work: KernelWork, budget: float | None
) -> None:
    file = name_recording(bench.folder, model.name, order.options.base_url)
    is_mind = model.name.startswith(PREFIX)
    concurrency = MINDS_AT_ONCE if is_mind else order.settle_model(model.name).provider.concurrency
    replies, inquiry = ask_kernels(model, plan.cells, plan.samples, file, concurrency, budget, bench.on_progress)
    work.cost += inquiry.model.usage.cost_usd or 0.0
    work.stopped = work.stopped or inquiry.stopped
    own = KernelSamples(model.name, model.is_language_model, read_samples(replies, bench))
    work.models.append(own)
    own.typical += grade_typical(own.samples, bench)
    by_place: dict[tuple[str, str], dict[Sizes, list[KernelSample]]] = {}
    for sample in own.samples:
        if sample.is_right and sample.cell.prompt == TOLD:
            by_size = by_place.setdefault((sample.cell.language, sample.cell.kernel), {})
            by_size.setdefault(sample.cell.sizes, []).append(sample)
    for (language, kernel), samples in by_place.items():
        programs = {sizes: find_medoid(right).source or "" for sizes, right in samples.items()}
        matrix = transfer_programs(bench, language, kernel, programs)
        work.transfers.setdefault((model.name, language), []).append(matrix)


def _search_kernels(plan: KernelPlan, bench: Workbench, work: KernelWork) -> None:
    by_place: dict[tuple[str, str, str], dict[Sizes, str]] = {}
    for cell, arm in product(plan.places, plan.controls):
        kernel = tune_kernel(arm, cell, plan.samples, bench)
        if kernel is not None:
            work.tuned.append(kernel)
            by_place.setdefault((cell.language, arm, cell.kernel), {})[cell.sizes] = kernel.source
            bench.on_progress(f"{cell.language} {cell.place}: searched by {arm}")
    for (language, arm, name), programs in by_place.items():
        matrix = transfer_programs(bench, language, name, programs)
        work.transfers.setdefault((CONTROL, f"{language}, {arm}"), []).append(matrix)


def forecast_study2(order: StudyOrder) -> tuple[Forecast, ...]:
    """What chat models would be asked, by language and prompt; replies as long as the templates' programs."""
    plan, forecasts = order.plan_kernels(), []
    for name in order.options.models:
        settings = order.settle_model(name)
        for language, prompt in [(language, prompt) for language in plan.languages for prompt in plan.prompts]:
            cells = [cell for cell in plan.cells if (cell.language, cell.prompt) == (language, prompt)]
            requests = len(cells) * plan.samples
            read = sum(estimate_tokens(m.content) + MESSAGE_TOKENS for c in cells for m in make_request(c, 0).messages)
            programs = [find_task(cell.kernel, language).impl or "" for cell in cells]
            written = sum(map(estimate_tokens, programs)) * plan.samples
            expected, most = (
                replace(bill_requests(settings, 1, read * plan.samples, tokens), requests=requests)
                for tokens in (written, requests * KERNEL_TOKENS)
            )
            forecasts.append(Forecast(f"{language}, {prompt}", name, 0, expected, None, most, None, expected, ()))
    return tuple(forecasts)


def _check_names(option: str, names: Iterable[str], known: Iterable[str]) -> None:
    for name in names:
        if name not in known:
            raise UsageError(f"{option}: given {name!r}; expected some of {', '.join(known)}")


CONDUCT: Mapping[str, Callable[[StudyOrder, Path, float | None, OnProgress], ConductedExperiment]] = {
    "instruments": conduct_instruments,
    "study1": conduct_study1,
    "study2": conduct_study2,
}
FORECAST: Mapping[str, Callable[[StudyOrder], tuple[Forecast, ...]]] = {
    "instruments": lambda order: (),
    "study1": forecast_study1,
    "study2": forecast_study2,
}
