"""What analyst and generator are asked can be read back from the texts alone, whatever texts are in it."""

from __future__ import annotations

import pytest
import yaml

from opsmith.agents.analysis import AnalystBrief, EarlierAttempt, read_analysis_prompt, request_analysis
from opsmith.agents.generation import (
    AttachedSource,
    GeneratorBrief,
    MemoryPair,
    ReferenceProgram,
    read_generation_prompt,
    request_program,
)
from opsmith.agents.prompt import read_prompt
from opsmith.errors import UsageError
from opsmith.models import Message
from opsmith.records import ProfileReport, Suggestion, Task
from tests.models.drawings import draw_png
from tests.tiny_target import TINY


class Improved(type(TINY)):
    """The tiny language with a platform."""

    def describe_platform(self) -> str:
        return "A stack of numbers.\nPushing costs 1: as everything does."

    def improvement_prompt(self, has_example: bool) -> str:
        return "general: fewer words are better\n" + "example: {before: 1 1 +, after: '2'}\n" * has_example


IMPROVED = Improved()
PICTURE = draw_png()
TASK = Task("add_0", "tiny", "inputs: [a, b]\ntext: |\n  sum: all\n\n  of them\n")
SUGGESTION = Suggestion('say "less": now', "line 2\nand 3", "- why # not", "yes")
PROGRAMS = {
    "plain": "a b +\n",
    "yaml": "impl: |\n  a: {b}\n---\n...\n# no comment\n\t&x *x !tag\n",
    "markers": "```yaml\nimpl: x\n```\nanswer: one suggestion\nprogram: other\n",
    "unicode": "größe = 'ÄÖ\U0001f600 \u2028 \x85 \x07'\r\n  indented\n",
    "indented": "  first\n    second\n",
    "percent": "%YAML 1.1\n\n\n@x `y` 'z'",
    "large": "a b + \n" * 150_000,
}


def _is_same(read: str, written: str) -> bool:
    """Up to common indentation and line breaks at the ends."""
    written_back = yaml.dump(_plain(read), Dumper=yaml.CSafeDumper)  # by libyaml: the large ones have 150,000 lines
    return yaml.load(written_back, Loader=yaml.CSafeLoader) == _plain(written)


def _plain(text: str) -> list[str]:
    lines = text.strip("\n").split("\n")
    width = min(len(line) - len(line.lstrip(" ")) for line in lines if line.strip())
    return [line[width:] if line.strip() else "" for line in lines]


@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS)
def test_an_analyst_prompt_reads_back(source):
    attempts = (EarlierAttempt(SUGGESTION, "right", 1.25), EarlierAttempt(None, "refused at TYPE: no", None))
    profiles = (ProfileReport("remarks", "text/plain", source), ProfileReport("screenshot", "image/png", PICTURE.data))
    messages = request_analysis(IMPROVED, AnalystBrief(TASK, "time", source, profiles, attempts, "no `goto`: ever"))
    prompt = read_analysis_prompt(messages)
    assert prompt is not None
    assert _is_same(prompt.source, source)
    assert prompt.attempts == attempts
    assert prompt.rules.strip() == "no `goto`: ever"
    assert [profile.kind for profile in prompt.profiles] == ["remarks"]
    assert _is_same(prompt.profiles[0].body, source)
    assert yaml.safe_load(prompt.task) == yaml.safe_load(TASK.text)
    assert prompt.objective == "time"
    assert "Pushing costs 1: as everything does." in yaml.safe_load(messages[0].content)["platform"]
    assert read_generation_prompt(messages) is None


def test_pictures_travel_beside_the_text_and_what_cannot_is_said_in_it():
    profiles = (ProfileReport("screenshot", "image/png", PICTURE.data), ProfileReport("torn", "image/png", "AAAA"))
    messages = request_analysis(IMPROVED, AnalystBrief(TASK, "time", "a b +", profiles))
    prompt = read_analysis_prompt(messages)
    assert [message.images for message in messages] == [(), (PICTURE,)]
    assert prompt is not None
    [torn] = prompt.profiles
    assert (torn.kind, "no image/png" in torn.body) == ("torn", True)


@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS)
def test_a_generator_prompt_reads_back(source):
    pair = MemoryPair("mul_0", "a: title", "what was done\nand why", source, source + "x", 1.5)
    brief = GeneratorBrief(
        TASK,
        "cycles",
        source,
        SUGGESTION,
        (pair,),
        ReferenceProgram("step", source),
        "be: brief\nand right",
        (AttachedSource("vector: math.h", source),),
        rules="no `goto`",
    )
    messages = request_program(IMPROVED, brief)
    prompt = read_generation_prompt(messages)
    assert prompt is not None
    assert _is_same(prompt.source, source)
    assert (prompt.objective, prompt.suggestion) == ("cycles", SUGGESTION)
    assert prompt.reference is not None
    assert _is_same(prompt.reference.source, source)
    assert _is_same(prompt.memory[0].after, source + "x")
    assert prompt.memory[0].ratio == 1.5
    assert (prompt.instructions.strip(), prompt.rules.strip()) == (brief.instructions, brief.rules)
    assert prompt.sources[0].name == "vector: math.h"
    assert _is_same(prompt.sources[0].text, source)
    assert read_analysis_prompt(messages) is None


def test_what_there_is_nothing_of_is_left_out():
    messages = request_program(IMPROVED, GeneratorBrief(TASK, "time", "a b +", has_example=False))
    assert list(yaml.safe_load(messages[1].content)) == ["task", "objective", "program", "answer"]
    assert "example" not in messages[0].content
    messages = request_analysis(IMPROVED, AnalystBrief(TASK, "time", "a b +"))
    assert list(yaml.safe_load(messages[1].content)) == ["task", "objective", "program", "answer"]


def test_the_prompts_teach_no_demonstration():
    brief = GeneratorBrief(TASK, "time", "a b +", SUGGESTION, (MemoryPair("m", "t", "d", "x", "y", 2.0),))
    for messages in (request_program(IMPROVED, brief), request_analysis(IMPROVED, AnalystBrief(TASK, "time", "a"))):
        assert not read_prompt(messages).examples


def test_a_repair_turn_is_still_the_same_prompt():
    messages = request_program(IMPROVED, GeneratorBrief(TASK, "time", "a b +", SUGGESTION))
    turned = (*messages, Message("assistant", "x"), Message("user", "The answer was refused at TYPE."))
    assert read_generation_prompt(turned) == read_generation_prompt(messages)


def test_other_messages_are_no_such_prompt():
    for text in ("task: {a: 1}\n", "answer: [one program]\n", "&a [*a]", "\0"):
        assert read_generation_prompt([Message("user", text)]) is None
        assert read_analysis_prompt([Message("user", text)]) is None


def test_a_language_without_a_platform_is_not_asked_about():
    with pytest.raises(UsageError, match="--analyst none"):
        request_analysis(TINY, AnalystBrief(TASK, "time", "a"))
    with pytest.raises(UsageError, match="no prompt for making right programs better"):
        request_program(TINY, GeneratorBrief(TASK, "time", "a"))
