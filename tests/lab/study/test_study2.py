"""study2: two prompts that differ in a sentence, parameters read by parsers, and known minds told apart through both SDKs."""

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
from models.servers import AnthropicServer, OpenAIServer, read_messages
from typer.testing import CliRunner

from opsmith.cli.app import build_app
from opsmith.models.table import get_model
from opsmith.settings import Settings
from opsmith.targets import get_target
from opsmith.targets.programs import PARAMETERS
from opsmith.targets.protocols import Parametrised
from opsmith_lab.evaluation.permutation import permute_labels
from opsmith_lab.evaluation.plan import ExperimentOptions
from opsmith_lab.study.controls import climb_by_rules, search_template
from opsmith_lab.study.kernels import KernelSample, ask_kernels, find_medoid, read_samples
from opsmith_lab.study.size_minds import FOLLOWED, PLANTED, RIGHT, SIZE_MINDS, SizeMind
from opsmith_lab.study.sizes import (
    COMMON,
    KERNELS,
    TEMPERATURES,
    TOLD,
    UNCOMMON,
    UNTOLD,
    KernelCell,
    list_cells,
    name_kind,
    read_told,
    write_messages,
)
from opsmith_lab.study.studies import StudyOrder, forecast_study2
from opsmith_lab.study.study2 import adjust_tests, compare_transfers, list_tests
from opsmith_lab.study.templates import read_template
from opsmith_lab.study.workbench import Workbench

LANGUAGES = ("c", "tvm", "cuda")
SOFTMAX = KernelCell("c", "softmax", KERNELS["softmax"][0], TOLD, 0.1)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_prompts_differ_in_exactly_one_sentence(language, kernel):
    for sizes in KERNELS[kernel]:
        told, untold = (write_messages(kernel, language, each) for each in (sizes, None))
        assert told[0] == untold[0]
        sentences = [re.split(r"(?<=\.)\s+", messages[1].content.rstrip("\n")) for messages in (told, untold)]
        assert [each for each in sentences[0] if each not in sentences[1]] == [sentences[0][-1]]
        assert sentences[0][:-1] == sentences[1]
        assert (read_told(told[1].content), read_told(untold[1].content)) == (sizes, None)
        assert not any(f"= {extent}" in untold[1].content for _, extent in sizes)
        assert "sizes:" not in untold[1].content


def test_each_kernel_has_ten_sizes_half_of_them_uncommon_and_3600_samples_a_language():
    for sizes in KERNELS.values():
        assert [name_kind(each) for each in sizes] == [COMMON, UNCOMMON] * 5
        assert len(set(sizes)) == 10
    order = StudyOrder(ExperimentOptions(models=("openai/gpt-4o-2024-11-20",)), (), (), Path(), LANGUAGES)
    forecasts = forecast_study2(order)
    assert [each.arm for each in forecasts] == [f"{name}, {prompt}" for name in LANGUAGES for prompt in (TOLD, UNTOLD)]
    assert [each.expected.requests for each in forecasts] == [1800] * 6
    assert all(0 < each.expected.cost_usd < each.most.cost_usd for each in forecasts)


PROGRAMS = {
    "c": (
        "#define COLUMNS 64\nenum { ROWS = 4, N_STAGES = 3 };\nvoid kernel(float *y, long N) {\n"
        "float sums[ROWS][COLUMNS];\n#pragma GCC unroll 8\nfor (long n = 0; n < N; n += ROWS * 2) { y[n] = 1; } }",
        {"tile": (8,), "block": (4, 64), "unroll": (8,), "stage": (3,)},
    ),
    "tvm": (
        "@T.prim_func(s_tir=True)\ndef kernel(y: T.handle):\n    part = T.alloc_buffer((16, 4), 'float32')\n"
        "    for n in range(0, N, 32):\n        for i, j in T.grid(4, N):\n            for k in T.unroll(2):\n"
        "                y[n] = 0\n",
        {"tile": (4, 32), "block": (4, 16), "unroll": (2,)},
    ),
    "cuda": (
        "// launch f grid=(M) block=(128, 2) args=(x, y)\nconstexpr int TILE = 32, STAGES = 2;\n"
        "constexpr int STAGE_COUNT = 3;\n#pragma unroll 4\n",
        {"tile": (32,), "block": (2, 128), "unroll": (4,), "stage": (3,)},
    ),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_parameters_are_read_from_the_text_by_its_language(language):
    target = get_target(language)
    source, parameters = PROGRAMS[language]
    assert isinstance(target, Parametrised)
    assert target.read_parameters(source) == parameters
    for text in ("", "no program {{{", "\x00", "(" * 5000):
        assert target.read_parameters(text) == {}
    for kernel in KERNELS:  # of a template every choice shows
        template = read_template(kernel, language)
        first, last = (
            target.read_parameters(template.write_program({name: own[place] for name, own in template.choices.items()}))
            for place in (0, -1)
        )
        assert first != last


def test_information_is_found_where_it_is_and_nowhere_else():
    rng = np.random.default_rng(0)
    labels = [size for size in range(10) for _ in range(6)]
    assert permute_labels([(labels, [size // 2 for size in labels])], rng).p < 0.01
    assert permute_labels([(labels, [7] * 60)], rng).p == 0.5
    assert permute_labels([], rng).p == 0.5
    assert permute_labels([(labels, labels)], rng).statistic == pytest.approx(np.log2(10), abs=1.5)
    draws = [permute_labels([(labels, rng.integers(0, 3, 60).tolist())], rng).p < 0.05 for _ in range(300)]
    assert 0.02 < np.mean(draws) < 0.085


def ask_mind(server, name, mind, cells, number, tmp_path):
    minds, rng = SizeMind(mind, ["c"]), random.Random(mind)
    with server(lambda body: minds.answer_messages(read_messages(body), body["temperature"], rng)) as served:
        model = get_model(Settings(model=f"{name}/{mind}", base_url=served.url))
        return ask_kernels(model, cells, number, tmp_path / f"{mind}.jsonl", 8, None, lambda text: None)[0]


def test_known_minds_are_told_apart_as_planted_through_both_sdks(tmp_path):
    """The small form: one kernel, eight sizes, four samples; nothing is timed."""
    cells = list(list_cells(["c"], ["softmax"], 8, (TOLD, UNTOLD)))
    servers = {"openai": OpenAIServer, "anthropic": AnthropicServer}
    with Workbench(tmp_path, lambda text: None, frozenset()) as bench:
        for number, mind in enumerate(("follower", "common-follower", "size-reciter", "heated")):
            name = list(servers)[number % 2]
            samples = read_samples(ask_mind(servers[name], name, mind, cells, 4, tmp_path), bench)
            assert {sample.stage for sample in samples} == {""}
            adjusted = adjust_tests(list_tests(samples))
            found = {test for test, p in adjusted.items() if p < 0.05 and test[0] in FOLLOWED}
            assert {test for test in found if test[-1] not in PARAMETERS} == PLANTED[mind], mind


def test_a_mind_that_errs_at_uncommon_sizes_is_found_to():
    cells, minds = list(list_cells(["c"], KERNELS, 10, (TOLD,))), SizeMind("bungler", ["c"])
    samples = []
    for number, cell in enumerate(cells):
        reply = minds.write_kernel(cell.kernel, "c", cell.sizes, cell.temperature, random.Random(number))
        samples.append(KernelSample(cell, reply, "PARSE" if reply.endswith("?\n") else ""))
    assert list_tests(samples)[RIGHT,].p < 0.01


def test_the_most_typical_program_is_the_one_in_the_middle():
    samples = [
        KernelSample(SOFTMAX, str(number), "", parameters)
        for number, parameters in enumerate(
            [(), (("tile", (8,)),), (("tile", (8, 16)),), (("tile", (16,)),), (("tile", (8, 16)), ("unroll", (4,)))]
        )
    ]
    assert find_medoid(samples).source == "2"
    assert find_medoid(samples[:1]).source == "0"


def test_controls_build_as_many_different_programs_as_they_may():
    pytest.importorskip("optuna")
    for search in (climb_by_rules, search_template):
        programs = []
        for program in search(SOFTMAX, 5, lambda source: 1 + len(source) % 7):
            programs.append(program)
            if len(programs) == 5:
                break
        assert len(set(programs)) == 5


def test_a_program_that_is_made_for_its_size_is_seen_to_be():
    rng = np.random.default_rng(0)
    matrices = [(1 + rng.random((8, 8)) + 0.8 * np.eye(8)).tolist() for _ in range(3)]
    assert compare_transfers(("a", "c"), matrices).result.p < 0.01
    assert compare_transfers(("a", "c"), matrices).gain > 1.2
    assert compare_transfers(("a", "c"), [[[None]]]) is None


def call(*arguments):
    return CliRunner().invoke(build_app(), ["experiment", "study2", *map(str, arguments)])


def test_the_study_is_asked_kept_and_shown(tmp_path):
    where = ("--out", tmp_path / "runs", "--results", tmp_path / "results", "--measure", "none")
    small = ("--sets", "two", "--samples", 2, "--tasks", "softmax")
    asked = ("--model", "mind/follower", "--model", "mind/bungler", *small, *where)
    planned = json.loads(call(*asked, "--dry-run", "--json").stdout)["experiments"]["study2"]
    assert [each["expected"]["requests"] for each in planned] == [2 * 3 * 2] * 4
    assert not (tmp_path / "runs").exists()
    assert call(*asked).exit_code == 0
    page = (tmp_path / "results" / "study2.md").read_text()
    assert "no language models" in page
    assert "| follower | c | softmax | 64 x 256: tile 32, block 32, unroll 2 (6/6) |" in page
    kept = {file.name: file.read_bytes() for file in (tmp_path / "runs" / "studies" / "study2").glob("*.jsonl")}
    assert call(*asked).exit_code == 0
    assert kept == {name: (tmp_path / "runs" / "studies" / "study2" / name).read_bytes() for name in kept}


@pytest.mark.parametrize(("arguments", "words"), [
    (("--arms", "told"), "expected told or untold with --model"),
    (("--model", "mind/follower", "--arms", "tuner"), "expected told or untold with --model"),
    (("--model", "mind/nobody"), "expected one of mind/follower"),
    (("--sets", "few"), "expected some of ten"),
    (("--sets", "ten,two"), "expected one"),
    (("--tasks", "row_sum"), "expected some of softmax"),
    (("--language", "cobol"), "cobol"),
    (("--language", "step"), "step"),
])  # fmt: skip
def test_a_wrong_order_is_refused_in_words(arguments, words, tmp_path):
    result = call(*arguments, "--out", tmp_path, "--results", tmp_path)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())


def test_every_mind_has_its_plan():
    assert SIZE_MINDS.keys() == PLANTED.keys()
    assert len(TEMPERATURES) == 3
