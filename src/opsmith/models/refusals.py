"""What a model refuses: learnt once from its server's words, said once, and left out from then on."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from opsmith.models.attempt import Failure
from opsmith.models.parts import drop_pictures, holds_pictures, refuses_pictures
from opsmith.models.retry import log

_REFUSAL = re.compile(
    r"unsupported|not support|n't support|unknown|unrecogni[sz]ed|unexpected|deprecated|not (?:permitted|allowed)"
    r"|extra (?:inputs|fields)|only the default|is not available|cannot be overridden",
    re.IGNORECASE,
)

_TOOLS = r"(?:tools?(?![.\[])|tool[_ -]?(?:use|calls?|calling|choice)|function[_ -]?call(?:s|ing)?|functions)"
_TOOLLESS = re.compile(  # words of OpenAI, OpenRouter, Groq, Together, vLLM, SGLang, llama.cpp, Ollama and the like
    rf"(?:not|n't|no) (?:support|accept|take|allow|enable|have)\w*\b[\w ]*{_TOOLS}\b"
    rf"|{_TOOLS}\b[`'\"]*(?: \w+){{0,3}} (?:is|are) (?:not |un)(?:yet )?"
    r"(?:supported|allowed|enabled|available|permitted)"
    rf"|(?:unsupported|unknown|unrecogni[sz]ed|unexpected)[\w ]*\W+{_TOOLS}\b"
    r"|tool choice requires|tools param requires|requires? --(?:enable-auto-tool-choice|tool-call-parser|jinja)"
    r"|no endpoints found that support tool",
    re.IGNORECASE,
)
_NAMED = re.compile(r"(?<![\w.])tools(?![\w.\[])")


@dataclass(frozen=True)
class Lesson:
    """What a refusal teaches beside a parameter to leave out: from then on, requests are built otherwise."""

    name: str
    words: str  # what is said of it
    teaches: Callable[[Failure, Mapping[str, Any]], bool]  # whether a failure of what was sent does


def refuses_tools(failure: Failure, sent: Mapping[str, Any]) -> bool:
    """Whether a server says that it, or its model, takes no tools. Words about one broken tool are none of them."""
    if "tools" not in sent or not failure.status or failure.status < 400:
        return False
    if "tool_choice" in sent and "tool_choice" in (failure.parameter or failure.text):
        return False  # that alone is left out
    names_them = failure.parameter == "tools" if failure.parameter else _NAMED.search(failure.text)
    return bool(names_them and refuses(failure)) or _TOOLLESS.search(failure.text) is not None


def refuses(failure: Failure) -> bool:
    """Whether a failure is the refusal of something that was sent."""
    is_refusal = _REFUSAL.search(failure.text) is not None or "unsupported" in failure.code
    return failure.status in {400, 422} and is_refusal


TEXTUAL = Lesson("textual tools", "takes no tools; they are described in its system text from now on", refuses_tools)


class Refusals:
    """What a model turned out to refuse: each is learnt once, reported once and then left out."""

    def __init__(self, name: str, instead: Mapping[str, str | None], lessons: Sequence[Lesson] = ()) -> None:
        """`instead` names what may be left out, and the parameter that takes its place, if one does."""
        self._name = name
        self._instead = instead
        self._lessons = lessons
        self._refused: set[str] = set()
        self.learnt: set[str] = set()  # names of lessons
        self.blind = False  # it takes no pictures
        self._scouting: asyncio.Event | None = None

    def fit_parameters(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """`parameters` without what is refused, renamed where there is another name."""
        names = {key: self._instead[key] if key in self._refused else key for key in parameters}
        fitting = {name: parameters[key] for key, name in names.items() if name}
        return drop_pictures(fitting) if self.blind else fitting

    def learn_refusal(self, failure: Failure, sent: Mapping[str, Any], learnt: Set[str]) -> bool:
        """Whether the failure refuses what was sent and may be left out: then send again. `learnt`: the lessons that
        what was sent was built by; none of them is taught twice."""
        if holds_pictures(sent) and failure.status and failure.status >= 400 and refuses_pictures(failure.text):
            if not self.blind:
                self.blind = True
                words = "takes no pictures; they are left out from now on, the text stays"
                log.warning("%s: the model %s", self._name, words)
            return True
        lesson = next(
            (lesson for lesson in self._lessons if lesson.name not in learnt and lesson.teaches(failure, sent)), None
        )
        if lesson is not None:
            if lesson.name not in self.learnt:
                self.learnt.add(lesson.name)
                log.warning("%s: the model %s", self._name, lesson.words)
            return True
        if not refuses(failure):
            return False
        key = next((key for key in self._instead if key in sent and _names_parameter(failure, key)), None)
        if key and key not in self._refused:  # another request may have learnt it meanwhile
            self._refused.add(key)
            action = f"sent as {self._instead[key]!r}" if self._instead[key] else "left out"
            log.warning("%s: the model refuses %r; it is %s from now on", self._name, key, action)
        return key is not None

    async def become_scout(self) -> bool:
        """Whether this request goes ahead to find out what else is refused; all others wait until it is back."""
        if self._scouting is None:
            self._scouting = asyncio.Event()
            return True
        await self._scouting.wait()
        return False

    def release_others(self) -> None:
        """The request that went ahead has its answer."""
        assert self._scouting is not None
        self._scouting.set()
        self._scouting = None


def _names_parameter(failure: Failure, key: str) -> bool:
    """Whether a refusal is about the parameter `key`: the server's `param` says so, or else its words do."""
    if failure.parameter:
        return failure.parameter.rpartition(".")[2] == key
    return re.search(rf"(?<!\w){re.escape(key)}(?!\w)", failure.text) is not None
