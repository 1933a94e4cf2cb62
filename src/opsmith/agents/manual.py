"""What a prompt quotes of a language's manual: the passages likest to a task and to what was found wrong before.

Ranking is BM25 over words, opcodes and what formulas stand for. A reference is a query, and so is each function that it
calls, in the field's words; they are fused by reciprocal rank. What is quoted stays in the order of the manual and is
marked as reference text: a manual gives no orders. Pure, but for `find_manual`.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
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
FOLLOWED = 3  # passages of a query whose references are followed, and places of a name that may be one
FUSION = 1.0  # what is added to ranks before their reciprocals are summed up
BEGINNING = " (its beginning)"  # after the title of a passage that is quoted in part
_AROUND, _INDENTATION = len(MEANING) + 50, 4  # characters of a prompt beside the quotations: in all, and a line
_SHORTEST = 200  # characters of a passage's beginning that are worth to be quoted
_READER = "opsmith.manuals:read_manual"  # whose confined processes few runs need
_WHOLE = re.compile(r"\s*(?:\||```|~~~)")  # begins a table or code
_WORD = re.compile(r"[^\W_]+(?:\.[^\W_]+)*")  # `row_sum` is two words; `ldv.u` is one, and its parts
_ENDING = re.compile(r"(?<=[^\W\d_]{3})(?:(?<!s)s|ies|ied|y|ing|ed|es|e|um|a)$")  # reverse, reversed; sum, sums
_CALL = re.compile(r"\b(\w+)\(|\b(keepdim)\b|(?<=[\w)\]]) ([-+*/@]) (?=[\w(])")  # of a reference
_VECTOR = re.compile(r"(?s)(?=.*input \w+: \w+ \[\w+\]).*input \w+: \w+ \[\w+, ")  # a task has one, for rows
_PART = re.compile(r" \(\d+\)$")  # of a section, in a title
_REFERENCE = re.compile(r"(?:\bsee|\b[Ss]ection|\b[Cc]hapter|§|[(|])\s*([A-Z]?\d*(?:\.\d+)+|[A-Z]?\d+)\s*(?=[)|.,;]|$)")
_FORMULA = re.compile(  # what is assigned, code, and what mathematicians write in a sentence: `1/x`, `ln(1 + e^x)`
    r"[-+*]?(?::=|=|←|<-)[^\n|`;]{1,120}|`[^`\n]{1,120}`|[\w(]*(?:\^|√|\bln\(|\blog\(|\b1/)[^\s|]*(?: [-+*/] [^\s|]+)*"
)
_NAME = re.compile(r"[A-Za-z][\w.]*\w")
_FIRST = re.compile(r"(?:^|[`|])[ \t]*([a-z][\w.]*)", re.MULTILINE)  # of a line, a cell or code
_OPCODE = re.compile(r"[A-Z][A-Z0-9_.]{2,11}|\w+[A-Z0-9._][\w.]*")  # has a capital, figure or point inside
_HUMP = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")  # of `MatMul` and `VMulAdd`
_FRAME = frozenset(  # words of every task and finding, and of every text
    _WORD.findall(
        "an and are arguments as at be by case data def dim dims error expected fp32 from given group in input inputs "
        "is it kernel name no normal not of on or output outputs problem program reference return shape size sizes "
        "that the this to torch try type uniform void where with"
    )
)
# functions of PyTorch : what manuals call them : parts of opcodes : what formulas have for them; - is nothing
_ROWS = [
    row.split(" : ")
    for row in r"""
mul * : multiply multiplication product scale : mul|mpy : [*×·⋅∗]
add + : add addition sum : add : \+
sub - : subtract difference minus : sub : (?<=[\w\])]) ?[-−] ?(?=[\w(])
div / : divide division quotient reciprocal : div : /|÷
matmul @ mm bmm einsum linear : matrix multiply product contraction accumulate tile : matm|gemm|mma|dot : -
abs : absolute magnitude : abs : \babs
amax max maximum : maximum max largest larger : max : \bmax
amin min minimum : minimum min smallest smaller : min : \bmin
argmax : index maximum place : argmax : \barg ?max
argmin : index minimum place : argmin : \barg ?min
argsort sort topk : sort order index largest : sort|topk : -
neg : negate sign : neg : -
clamp clip : clamp clip bound limit saturate interval range : cla?mp|clip|sat|bnd : min\w* ?\(max|max\w* ?\(min
conv1d conv2d : convolution : conv : -
cumprod : running product scan prefix cumulative : scan|prefix|cum : (?:prod|[Π∏])[^=]*(?:[<≤]|\.\.)
cumsum : running total sum scan prefix cumulative : scan|prefix|cum : (?:sum|[Σ∑])[^=]*(?:[<≤]|\.\.)
erf : error function : erf : \berf
exp : exponential exponent : exp|ex2 : \be ?(?:\^|\*\*)|\bexp
flip : reverse mirror backwards order : rev|flip|mirr : - ?1 ?- ?\w|\b(?:last|end) ?- ?\w
gather index_select take : gather index permute : gath|perm|idx : \[\w+\[
log : logarithm : log|lg2 : \bln\b|\blog
permute transpose : transpose exchange rows columns : tran|trn : \[(\w), ?(\w)\][^\[]*\[\2, ?\1\]
prod : product : prod : [Π∏]|\bprod
reciprocal : reciprocal inverse divide : rcp|recip|inv : \b1(?:\.0)? ?/|\^ ?\(?[-−]1\b(?!/)
relu : rectify maximum zero : relu : -
keepdim expand unsqueeze repeat_interleave : broadcast replicate column : bcast|splat|dup : -
roll : rotate circular shift : rot|rol : \bmod\b|%
rsqrt : reciprocal inverse square root : rsq : \^ ?\(?[-−](?:1/2|0?\.5)|1 ?/ ?(?:√|sqrt)
scatter scatter_add : scatter accumulate : scat : -
sigmoid : sigmoid logistic : sigm : 1 ?/ ?\(1 ?\+ ?e
softplus : softplus logarithm exponential smooth : - : (?:ln|log\w*) ?\(?1 ?\+ ?e
sqrt : square root : sqrt : √|sqrt|\^ ?\(?(?:1/2|0?\.5)
square pow : squares power : sqr(?!t)|squ : \^ ?2\b|²|\*\* ?2\b
sum : add reduce fold accumulate total : sum|red : [Σ∑]|\bsum
tanh : hyperbolic tangent : tanh : \btanh
tril triu : mask triangle : - : -
broadcast : vector row : - : -
where masked_fill : select mask : sel|blend|cmov : \?[^:]*:""".strip().splitlines()
]
_FIELD_WORDS = {name: f"{row[0].split()[0]} {row[1]}" for row in _ROWS for name in row[0].split()}
_SIGNS = {row[0].split()[0]: [re.compile(sign if sign != "-" else r"(?!)") for sign in row[2:]] for row in _ROWS}
_STEPS = {  # of functions that most machines have no instruction for; what is joined by a point is one
    "softmax": "amax sub.keepdim exp sum reciprocal mul.keepdim",
    "log_softmax": "amax sub.keepdim exp sum log",
    "logsumexp": "amax exp sum log",
    "silu": "sigmoid mul",
    "gelu": "erf tanh mul",
    "mean": "sum mul",
    "layer_norm": "sum sub.keepdim square rsqrt mul.keepdim add",
    "rms_norm": "square sum rsqrt mul.keepdim",
    "normalize": "square sum rsqrt mul.keepdim",
    "var": "sum sub.keepdim square",
    "std": "sum sub.keepdim square sqrt",
    "norm": "square sum sqrt",
}


@dataclass(frozen=True)
class Quotation:
    """A passage as a prompt quotes it, and why."""

    title: str
    text: str
    score: float = 0.0  # by how many queries it is likely, and how much: a sum of reciprocal ranks
    words: tuple[str, ...] = ()  # of the queries, that it holds, the rarest first

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
        texts = map(str, self.quotations)
        return WordIndex([_join_words(" ".join((text, *_name_operations(text)))) for text in texts])

    def rank(self, query: str) -> list[Quotation]:
        """All of them, the likest first: to all words of the query, and to each function that it calls, in turn."""
        asked = [word for word in _WORD.findall(query.casefold()) if word not in _FRAME and len(word) > 1]
        called = [name for names in _CALL.findall(query) for name in names if name]
        called += ["broadcast"] if _VECTOR.match(query) else []
        steps = dict.fromkeys(step for name in called for step in (name, *_STEPS.get(name, "").split()))
        operations = [" ".join(_FIELD_WORDS.get(name, "") for name in step.split(".")) for step in steps]
        asked += [_FIELD_WORDS[name] for word in asked for name in word.split(".") if name in _FIELD_WORDS]
        scores = [0.0] * len(self.quotations)
        words: list[dict[str, float]] = [{} for _ in scores]
        for text in dict.fromkeys((" ".join((*asked, *operations)), *operations)):
            unique = dict.fromkeys(word for word in _join_words(text).split() if not word.isdigit())
            shares = self._index.score_words(" ".join(unique))
            likely = sorted((-math.fsum(each.values()), place) for place, each in enumerate(shares) if each)
            seen = Counter[str]()  # passages by section
            for number, (_, place) in enumerate(likely):
                scores[place] += 1 / (FUSION + number) / (1 + seen[self._sections[place]])
                seen[self._sections[place]] += 1
                words[place] |= shares[place]
                for other in self._follow(place, shares[place]) if number < FOLLOWED else ():
                    scores[other] += 1 / (FUSION + number + FOLLOWED)
        return [
            replace(self.quotations[i], score=scores[i], words=tuple(sorted(words[i], key=lambda w: -words[i][w])))
            for i in sorted(range(len(words)), key=lambda place: (-scores[place], place))
        ]

    @cached_property
    def _sections(self) -> list[str]:
        """By passage, the title of its section."""
        return [_PART.sub("", quotation.title) for quotation in self.quotations]

    @cached_property
    def _places(self) -> Mapping[str, list[int]]:
        """Where a section begins, by its number, and where a name begins a heading, a line, a cell or code."""
        places = defaultdict[str, list[int]](list)
        for place, quotation in enumerate(self.quotations):
            number, _, words = quotation.title.rpartition(" > ")[2].partition(" ")
            heading = words if number[-1:].isdigit() else f"{number} {words}"
            names = set(_FIRST.findall(f"{heading}\n{quotation.text}".casefold()))
            for name in names if _PART.search(heading) else {*names, number}:
                places[name].append(place)
        return {name: each for name, each in places.items() if len(each) <= FOLLOWED}

    def _follow(self, place: int, words: Mapping[str, float]) -> set[int]:
        """Where what a passage says of the words leads: sections by number, and what instructions of a name are."""
        names = set[str]()
        for sentence in re.split(r"\n|(?<=[.;]) ", self.quotations[place].text):
            if not words.keys().isdisjoint(_join_words(sentence).split()):
                names.update(_REFERENCE.findall(sentence))
                names.update(map(str.casefold, _list_opcodes(sentence)))
        others = {other for name in names for other in self._places.get(name, ())}
        return {other for other in others if self._sections[other] != self._sections[place]}


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
        return content_hash("manual, fused", str(self.tokens), *texts)

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
    return " ".join(map(_stem_word, _WORD.findall(text.casefold())))


@lru_cache(1 << 16)
def _stem_word(word: str) -> str:
    return " ".join(_ENDING.sub("", part.replace(".", "_")) for part in dict.fromkeys((word, *word.split("."))))


def _list_opcodes(text: str) -> set[str]:
    """Names that are no words of prose, as far as their letters and places tell."""
    return {*_FIRST.findall(text), *filter(_OPCODE.fullmatch, set(_NAME.findall(text)))}


def _name_operations(text: str) -> Iterator[str]:
    """What its formulas and opcodes say in the words of functions, and the parts of names that have several."""
    for opcode in _list_opcodes(text):
        yield from _read_opcode(opcode)
    formulas = " ".join(_FORMULA.findall(text))
    for name, (_, sign) in _SIGNS.items() if formulas else ():
        yield from [name] * len(sign.findall(formulas))


@lru_cache(1 << 16)
def _read_opcode(opcode: str) -> tuple[str, ...]:
    humps = _HUMP.findall(opcode)
    named = (name for name, (sign, _) in _SIGNS.items() for _ in sign.findall(opcode.casefold()))
    return (*(humps if len(humps) > 1 else ()), *named)
