"""The prompt library: every example verifies, every primitive has one, and none of them is a benchmark task."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from opsmith.agents.prompt import read_prompt
from opsmith.judging.verifier import verify
from opsmith.models import Message
from opsmith.models.tokens import estimate_tokens
from opsmith.targets.step import STEP
from opsmith.targets.step.ir import read_spec
from opsmith.targets.step.language.affine_only import affine_errors
from opsmith.targets.step.language.ops import KEYWORDS

PAPER = Path(__file__).parents[2] / "fixtures" / "paper"
PROPOSER = yaml.safe_load(STEP.base_prompt("proposer"))
GUARDIAN = yaml.safe_load(STEP.base_prompt("guardian"))


def named_examples(prompt: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for kind in ("ops", "patterns"):
        for entry in prompt[kind]:
            for number, example in enumerate(entry["examples"]):
                yield f"{entry['name']}_{number}", example


EXAMPLES = dict(named_examples(PROPOSER))


def paper(name: str) -> Any:
    return yaml.safe_load((PAPER / name).read_text(encoding="utf-8"))


def without_impl(example: dict[str, Any]) -> str:
    return str(yaml.safe_dump({key: value for key, value in example.items() if key != "impl"}, sort_keys=False))


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_verifies(name: str) -> None:
    task = STEP.read_task(without_impl(EXAMPLES[name]), f"example_{name}")
    verdict = verify(task, EXAMPLES[name]["impl"])
    assert verdict.passed, verdict.message
    assert verdict.warnings == ()


def test_the_base_prompt_is_small() -> None:
    assert estimate_tokens(STEP.base_prompt("proposer")) <= 4500


def test_the_base_prompt_has_the_form_of_a_prompt_file() -> None:
    assert list(PROPOSER) == ["general", "ops", "patterns"]
    assert list(PROPOSER["general"]) == ["desc"]
    assert all(list(entry) == ["name", "desc", "examples"] for entry in PROPOSER["ops"] + PROPOSER["patterns"])
    assert len(EXAMPLES) == len(read_prompt([Message("system", STEP.base_prompt("proposer"))]).examples)


def test_every_primitive_is_described_and_used_in_an_example_of_its_own() -> None:
    described = {name: entry for entry in PROPOSER["ops"] for name in entry["name"].split(" and ")}
    assert set(described) == set(KEYWORDS)
    for name, entry in described.items():
        assert all(f"step.{name}(" in example["impl"] for example in entry["examples"])


def test_a_usage_pattern_is_more_than_one_primitive() -> None:
    for entry in PROPOSER["patterns"]:
        assert all(example["impl"].count("step.") >= 2 for example in entry["examples"])


def signature(text: str) -> tuple[Any, ...]:
    spec = read_spec(text)
    fns = sorted((str(fn.input_dtype), str(fn.output_dtype), str(fn.init)) for fn in spec.fns)
    return (tuple(str(i.type) for i in spec.inputs), tuple(str(o.type) for o in spec.outputs), tuple(fns))


def test_no_example_is_a_benchmark_task() -> None:
    folder = files("opsmith.suites.step26")
    tasks = [entry.read_text(encoding="utf-8") for entry in folder.iterdir() if entry.name.endswith(".yaml")]
    assert len(tasks) == 26
    solutions = {STEP.canonical_form(read_spec(text).impl or "") for text in tasks}
    signatures = {signature(text) for text in tasks}
    for name, example in EXAMPLES.items():
        assert STEP.canonical_form(example["impl"]) not in solutions, name
        assert signature(without_impl(example)) not in signatures, name


# -------------------------------------------------------------------- the guardian
def test_the_guardians_prompt_has_the_three_cases() -> None:
    assert list(GUARDIAN) == ["desc", "examples"]
    assert [list(example) for example in GUARDIAN["examples"]] == [["input_impl", "output_impl", "explanation"]] * 3
    assert GUARDIAN["examples"][2]["input_impl"] == GUARDIAN["examples"][2]["output_impl"]


@pytest.mark.parametrize("prompt", [GUARDIAN, paper("fig20.yaml")], ids=["ours", "the paper's"])
def test_the_guardians_examples_show_what_they_say(prompt: Any) -> None:
    kinds = [[error.kind for error in affine_errors(example["input_impl"])] for example in prompt["examples"]]
    assert kinds == [["AFFINE"], ["AFFINE"], []]
    assert all(affine_errors(example["output_impl"]) == () for example in prompt["examples"])


@pytest.mark.parametrize(
    ("source", "findings"),
    [
        ("a = step.Map(fn=f).apply(E0)\nreturn a, E0", []),
        ("L = [step.Map(fn=f).apply(E0) for f in [f0, f1]]\nreturn L", ["E0 (input): consumed 2 times"]),
        ("X = E0\na = step.Zip().apply((X, E0))\nreturn a", ["E0 (input): consumed 2 times"]),
        ("P = step.Partition(N=E_value).apply((E0, E1))\na = step.Zip().apply((P[1], P[1]))\nreturn a", ["consumed 2"]),
        ("a = step.Map(fn=f).apply(E0\nreturn a", ["LANG"]),
    ],
)
def test_the_affine_rule_can_be_checked_without_a_task(source: str, findings: list[str]) -> None:
    errors = affine_errors(source)
    assert len(errors) == len(findings)
    assert all(words in str(error).replace(": given", ":") for words, error in zip(findings, errors, strict=True))


# -------------------------------------------------------------------- the paper's figures
@pytest.mark.parametrize(
    ("name", "examples"),
    [("fig14.yaml", lambda data: data[0]["examples"]), ("fig17.yaml", lambda data: data["examples"])],
)
def test_the_examples_in_the_papers_prompt_verify(name: str, examples: Any) -> None:
    for example in examples(paper(name)):
        task = STEP.read_task(without_impl(example), name)
        verdict = verify(task, example["impl"])
        assert verdict.passed, verdict.message


def test_the_papers_task_loads_and_its_implementation_passes() -> None:
    unsolved = STEP.read_task((PAPER / "fig15.yaml").read_text(encoding="utf-8"), "fig15")
    solved = STEP.read_task((PAPER / "fig18.yaml").read_text(encoding="utf-8"), "fig18")
    assert unsolved.impl is None
    assert unsolved.text == solved.text
    verdict = verify(unsolved, solved.impl or "")
    assert verdict.passed, verdict.message
