"""What a tool answers: the language's own words, findings, verdicts; and words for whatever it cannot use."""

from __future__ import annotations

import asyncio
import json

import pytest
from tiny_target import TINY, register, tiny_task

from opsmith.judging.verifier import leave_unjudged, verify
from opsmith.records import FOR_PEOPLE, Boundary, Diagnostic, Level, Task, Verdict
from opsmith.targets import get_target
from opsmith.tools import ToolContext, ToolOutcome, ToolResult
from opsmith.tools.arguments import MOST_ARGUMENTS, write_schema
from opsmith.tools.language import list_sections
from opsmith.tools.sections import cut_sections
from opsmith.tools.table import TOOLS, run_tool
from opsmith.tools.wording import MOST_TEXT, bound_text

register()
TASK = tiny_task("sum_0", "x y + z +")


class InProcess:
    async def judge(self, task: Task, source: str, level: Level = Level.CHEAP) -> Verdict:
        return verify(task, source)


def call(name: str, arguments: object, judge: object = None, target: str = "tiny") -> ToolResult:
    context = ToolContext(get_target(target), TASK, judge or InProcess())  # type: ignore[arg-type]
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return asyncio.run(run_tool(TOOLS[name], context, text))


def test_check_and_try_say_what_is_wrong_and_what_is_not() -> None:
    assert "Nothing is wrong before it runs" in call("check", {"program": "x y + z +"}).text
    assert "Refused at AFFINE" in call("check", {"program": "impl: |\n  x x +\n"}).text
    wrong = call("try", {"program": "x y + z *"})
    assert wrong.outcome is ToolOutcome.OK
    assert "stage: MATCH" in wrong.text
    assert "outcome: refused" in wrong.text
    assert "outcome: passed" in call("try", {"program": "x y + z +"}).text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('{"program": ', "no JSON"),
        ("[1]", "a JSON list"),
        ('{"program": 7}', "int '7'"),
        ('{"source": "x"}', "given:    nothing"),
        ('{"program": "x", "sizes": true}', "argument 'sizes'"),
        ('{"program": "\\ud800"}', "unicode"),
        ('{"program": "' + "x" * MOST_ARGUMENTS + '"}', "characters"),
        ("[" * 100_000, "no JSON"),
        ('{"program": "a\x1b[2Jb"}', "no JSON"),
    ],
)
def test_arguments_that_are_none_are_answered_in_words(arguments: str, words: str) -> None:
    result = call("check", arguments)
    assert result.outcome is ToolOutcome.REFUSED
    assert words in result.text
    assert len(result.text) < 1000
    assert all(char.isprintable() or char in "\n\t" for char in result.text)


def test_what_fails_beside_the_program_says_nothing_of_it() -> None:
    class Broken:
        async def judge(self, task: Task, source: str, level: Level = Level.CHEAP) -> Verdict:
            raise RuntimeError("secret")

    class Lost:
        async def judge(self, task: Task, source: str, level: Level = Level.CHEAP) -> Verdict:
            return leave_unjudged(source, Boundary.SANDBOX, Diagnostic("SANDBOX", "a worker", "N = 77", "a verdict"))

    failed, unjudged = call("try", {"program": "x"}, Broken()), call("try", {"program": "x"}, Lost())
    assert failed.outcome is ToolOutcome.ERROR
    assert "secret" not in failed.text
    assert unjudged.outcome is ToolOutcome.ERROR
    assert "77" not in unjudged.text
    assert "sandbox" in unjudged.text


def test_what_is_for_people_is_in_no_verdict_of_a_tool() -> None:
    class Warning:
        async def judge(self, task: Task, source: str, level: Level = Level.CHEAP) -> Verdict:
            verdict = verify(task, source)
            notes = (f"{FOR_PEOPLE}at N = 77: other values", "at N = 78 this is another program")
            return Verdict(verdict.candidate, verdict.stage, verdict.outcome, verdict.charged_to, verdict.errors, notes)

    for program in ("x y + z +", "x y + z *"):
        assert "N = 7" not in call("try", {"program": program}, Warning()).text


def test_language_finds_a_construct_by_name_by_words_or_lists_what_there_is() -> None:
    step = call("language", {"topic": "step.Bufferize"}, target="step").text
    assert "1 <= a <= rank" in step
    assert "Bufferize(a) packs the a inner dims" in step
    assert "step.Copy().apply" in call("language", {"topic": "softmax"}, target="step").text
    assert "- Arrays" in call("language", {}, target="c").text
    assert "#pragma omp simd" in call("language", {"topic": "vectorise"}, target="c").text
    unknown = call("language", {"topic": "qqq"}, target="c")
    assert unknown.outcome is ToolOutcome.REFUSED
    assert "- Sizes" in unknown.text
    assert "answer" in list_sections(TINY)


def test_sections_are_the_texts_of_the_prompt() -> None:
    markdown = "Before.\n\n# One\na\n```\n# no heading\n```\n## Two\nb\n"
    assert cut_sections(markdown) == {
        "Overview": "Before.",
        "One": "# One\na\n```\n# no heading\n```",
        "Two": "## Two\nb",
    }
    prompt = TINY.base_prompt("proposer") or ""
    assert all(section in prompt for section in cut_sections(prompt).values())
    assert cut_sections("First rule. It holds.\n\n    code\n\nSecond rule: no.\n").keys() == {
        "First rule",
        "Second rule",
    }


def test_a_result_is_bounded_and_says_how_much_was_cut() -> None:
    text = bound_text("a\x1b" + "b" * (2 * MOST_TEXT))
    assert len(text) < MOST_TEXT + 100
    assert f"({MOST_TEXT + 2} of {2 * MOST_TEXT + 2} characters are cut here)" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("tool", TOOLS.values(), ids=list(TOOLS))
def test_each_tool_states_its_arguments_as_a_bounded_schema(tool: object) -> None:
    schema = write_schema(tool.arguments)  # type: ignore[attr-defined]
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    for entry in schema["properties"].values():
        assert "maxLength" in entry or "maximum" in entry, entry
