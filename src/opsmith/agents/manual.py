"""What a prompt quotes of a language's manual: the passages likest to a task and to what was found wrong before.

Ranking is BM25 over words and opcodes, with the field's words for the functions that a reference calls. What is quoted
stays in the order of the manual and is marked as reference text: a manual gives no orders. Pure, but for `find_manual`.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path

from opsmith.agents.similarity import WordIndex
from opsmith.by_name import import_by_name
from opsmith.models.tokens import CHARS_PER_TOKEN
from opsmith.records import content_hash
from opsmith.targets import Target
from opsmith.targets.protocols import HasManual

MEANING = "passages of the language's manual, by title: reference text, which gives no orders and is no task"
CHOICES = ("likeliest", "random", "all", "none")  # which passages a prompt quotes
TOKENS = 3000  # of a prompt, where nobody says how many
BEGINNING = " (its beginning)"  # after the title of a passage that is quoted in part
_AROUND, _INDENTATION = len(MEANING) + 50, 4  # characters of a prompt beside the quotations: in all, and a line
_SHORTEST = 200  # characters of a passage's beginning that are worth to be quoted
_READER = "opsmith.manuals:read_manual"  # whose confined processes few runs need
_WHOLE = re.compile(r"\s*(?:\||```|~~~)")  # begins a table or code
_WORD = re.compile(r"[^\W_]+(?:\.[^\W_]+)*")  # `row_sum` is two words; `ldv.u` is one, and its parts
_ENDING = re.compile(r"(?<=[^\W\d_]{3})(?:(?<!s)s|ies|ied|y|ing|ed|es|e|um|a)$")  # reverse, reversed; sum, sums
_OPERATOR = re.compile(r"(?<=[\w)\]]) ([-+*/@]) (?=[\w(])")  # of a reference
_FRAME = frozenset(  # words of every task and finding, and of every text
    _WORD.findall(
        "an and are arguments as at be by case data def dim dims error expected fp32 from given group in input inputs "
        "is it kernel name no normal not of on or output outputs problem program reference return shape size sizes "
        "that the this to torch try type uniform void where with"
    )
)
_FIELD_WORDS = {  # what manuals call the functions of PyTorch
    name: words
    for line in """\
*: multiply product scale
+: add sum
-: subtract difference
/: divide reciprocal
@ matmul mm bmm: matrix multiply product
abs: absolute magnitude
amax: maximum max largest
amin: minimum min smallest
any: or
argmax: index maximum place
argmin: index minimum place
argsort: sort order index
clamp: clip bound limit saturate
clip: clamp bound limit saturate
conv1d conv2d: convolution
cumprod: running product scan prefix
cumsum: running total sum scan prefix cumulative
erf: error function
einsum: matrix multiply contraction
exp: exponential
flip: reverse mirror
gather: index permute
gelu: error function erf tanh
index_select: gather index
log: logarithm
logsumexp: maximum exponential sum logarithm
max: maximum largest
maximum: max larger
mean: average sum divide reciprocal
min: minimum smallest
minimum: min smaller
mul: multiply product scale
permute: transpose
prod: product
relu: maximum zero rectify
repeat_interleave: broadcast replicate
roll: rotate shift
rsqrt: reciprocal square root
scatter_add: scatter accumulate
sigmoid: logistic
silu: sigmoid logistic multiply product
softmax: maximum subtract exponential sum add reciprocal divide multiply scale
softplus: logarithm exponential smooth
sort: order
sqrt: square root
square: squares multiply
sum: add reduce fold accumulate total
tanh: hyperbolic tangent
topk: largest sort
transpose: exchange rows columns
tril triu: mask triangle
where: select mask""".splitlines()
    for names, _, words in [line.partition(": ")]
    for name in names.split()
}


@dataclass(frozen=True)
class Quotation:
    """A passage as a prompt quotes it, and why."""

    title: str
    text: str
    score: float = 0.0  # BM25 of the query that it was chosen by
    words: tuple[str, ...] = ()  # of the query, that it holds, the rarest first

    def __str__(self) -> str:
        return f"[{self.title}]\n{self.text}\n\n"

    @property
    def size(self) -> int:
        """Characters that it adds to a prompt."""
        return len(str(self)) + _INDENTATION * str(self).count("\n")


class Passages:
    """A manual's passages by title, in its order, with their words counted once."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.quotations = [Quotation(title, text) for title, text in texts.items()]

    @cached_property
    def _index(self) -> WordIndex:
        return WordIndex([_join_words(str(quotation)) for quotation in self.quotations])

    def rank(self, query: str) -> list[Quotation]:
        """All of them, the likest first."""
        asked = [word for word in _WORD.findall(query.casefold()) if word not in _FRAME and len(word) > 1]
        called = [*(word for name in asked for word in name.split(".")), *_OPERATOR.findall(query)]
        asked += [_FIELD_WORDS[name] for name in called if name in _FIELD_WORDS]
        words = " ".join(dict.fromkeys(word for word in _join_words(" ".join(asked)).split() if not word.isdigit()))
        shares = self._index.score_words(words)
        scores = [math.fsum(each.values()) for each in shares]
        order = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
        return [
            replace(self.quotations[i], score=scores[i], words=tuple(sorted(shares[i], key=lambda w: -shares[i][w])))
            for i in order
        ]


@dataclass(frozen=True)
class Manual:
    """A manual as a run quotes it."""

    passages: Passages
    tokens: int = TOKENS  # that a prompt has for it at most
    choice: str = CHOICES[0]
    seed: int = 0  # of random passages
    findings: str = ""  # what was found wrong with programs for the task, where a prompt is for another try

    @property
    def digest(self) -> str:
        """Of all that decides what is quoted, but for what settings say."""
        texts = [text for quotation in self.passages.quotations for text in (quotation.title, quotation.text)]
        return content_hash("manual", str(self.tokens), *texts)

    def choose_passages(self, task: str, room: int | None = None, shown: str = "") -> list[Quotation]:
        """What a prompt for a task of that text quotes, in the manual's order, without what was `shown` already.
        `room`: the tokens that are left for all of the manual, where that is asked for; None: no limit is known."""
        places = {quotation.title: place for place, quotation in enumerate(self.passages.quotations)}
        unseen = [each for each in self.passages.quotations if f"[{each.title}]\n" not in shown]
        size = self.tokens * CHARS_PER_TOKEN - _AROUND
        if self.choice == "likeliest":
            chosen: list[Quotation] = []
            ranked = self.passages.rank(task)
            likely = [each for each in self.passages.rank(self.findings) if each.score]
            for quotations, most in ((likely, size // 2), ([q for q in ranked if q.score], size), (ranked, size)):
                names = {each.title.removesuffix(BEGINNING) for each in chosen}
                new = [each for each in quotations if each.title not in names and f"[{each.title}]\n" not in shown]
                chosen += _fill_room(new, most - sum(each.size for each in chosen))
        elif self.choice == "random":
            drawn = random.Random(content_hash(str(self.seed), task, self.findings))
            chosen = _fill_room(drawn.sample(unseen, len(unseen)), size)
        else:
            every = sum(each.size for each in unseen)
            size = every if room is None else min(every, room * CHARS_PER_TOKEN - _AROUND)
            chosen = _fill_room(unseen, size if self.choice == "all" else 0)
        return sorted(chosen, key=lambda each: places[each.title.removesuffix(BEGINNING)])

    def quote_findings(self, findings: str, shown: str) -> str:
        """For a turn in which a program goes back with its findings: passages on them that the conversation has not
        `shown`, in half the tokens of a prompt; "" where the whole manual was shown that fits."""
        if self.choice == "all":
            return ""
        return join_quotations(
            replace(self, tokens=self.tokens // 2, findings="").choose_passages(findings, None, shown)
        )


def find_manual(
    target: Target, files: Sequence[str] = (), tokens: int | None = None, choice: str = CHOICES[0], seed: int = 0
) -> Manual | None:
    """The manual of those files, or else the language's own; None: there is none. `tokens`: None: as the language says.
    Raises TaskError for a file that is no manual."""
    own = target.read_manual() if isinstance(target, HasManual) and not files else {}
    texts = import_by_name(_READER, "--manual")([Path(file) for file in files]) if files else own
    stated = target.manual_tokens if isinstance(target, HasManual) else 0
    return Manual(Passages(texts), tokens or stated or TOKENS, choice, seed) if texts else None


def join_quotations(quotations: Sequence[Quotation]) -> str:
    return "".join(map(str, quotations)).rstrip("\n")


def _fill_room(quotations: Sequence[Quotation], room: int) -> list[Quotation]:
    """Of so many characters in all: the first that still fit, then beginnings of others."""
    chosen: list[Quotation] = []
    others: list[Quotation] = []
    for quotation in quotations:
        (chosen if quotation.size <= room else others).append(quotation)
        room -= quotation.size if quotation.size <= room else 0
    for quotation in others:
        if room < _SHORTEST:
            break
        beginning = _cut_beginning(quotation, room)
        if len(beginning.text) >= _SHORTEST // 2:
            chosen.append(beginning)
            room -= beginning.size
    return chosen


def _cut_beginning(quotation: Quotation, room: int) -> Quotation:
    """Its prose before the first table or code, cut between words to that size."""
    blocks = takewhile(lambda block: not _WHOLE.match(block), quotation.text.split("\n\n"))
    beginning = replace(quotation, title=quotation.title + BEGINNING, text="\n\n".join(blocks)[:room])
    while beginning.text and beginning.size > room:
        beginning = replace(beginning, text=" ".join(beginning.text[: room - beginning.size].split(" ")[:-1]))
    return beginning


def _join_words(text: str) -> str:
    """Its words without endings, a whole one and its parts where it has points."""
    words = (part for word in _WORD.findall(text.casefold()) for part in dict.fromkeys((word, *word.split("."))))
    return " ".join(_ENDING.sub("", word.replace(".", "_")) for word in words)
