"""Experiences by likeness to a task: BM25 over the words of what the tasks declare, that is types, dims and functions.

Okapi BM25 with the usual constants (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009): the task's
text is the query, each experience's task text a document. Words in nearly every document weigh next to nothing, so what
counts are element types, dims and fns that few tasks have. Programs are not compared.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from opsmith.records import Experience, Task

K1, B = 1.2, 0.75
_WORD = re.compile(r"\w+")


def most_similar_first(task: Task, experiences: Sequence[Experience]) -> tuple[Experience, ...]:
    """The experiences by falling score; of equal ones the hardest first, then by task id."""
    texts = [experience.task.prompt_text for experience in experiences]
    ranked = zip(score_documents(task.prompt_text, texts), experiences, strict=True)
    order = sorted(ranked, key=lambda pair: (-pair[0], pair[1].success_rate, pair[1].task.id))
    return tuple(experience for _, experience in order)


def score_documents(query: str, documents: Sequence[str]) -> list[float]:
    """The BM25 score of each document.

    >>> [round(score, 2) for score in score_documents("fp32 Buffer", ["fp32 Buffer", "fp32 Multihot"])]
    [0.88, 0.18]
    """
    counts = [Counter(_WORD.findall(document)) for document in documents]
    holders = Counter(word for count in counts for word in count)
    mean = sum(map(Counter.total, counts)) / max(1, len(counts)) or 1.0
    weights = {
        word: uses * math.log(1 + (len(counts) - holders[word] + 0.5) / (holders[word] + 0.5))
        for word, uses in Counter(_WORD.findall(query)).items()
    }
    return [_score_document(weights, count, count.total() / mean) for count in counts]


def _score_document(weights: dict[str, float], count: Counter[str], length: float) -> float:
    """`length`: of the document, in mean lengths."""
    norm = K1 * (1 - B + B * length)
    return math.fsum(weight * count[word] * (K1 + 1) / (count[word] + norm) for word, weight in weights.items())
