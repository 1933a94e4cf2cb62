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
    return WordIndex(documents).score_all(query)


class WordIndex:
    """Documents whose words are counted once, for many queries."""

    def __init__(self, documents: Sequence[str]) -> None:
        self._counts = [Counter(_WORD.findall(document)) for document in documents]
        self._holders: dict[str, list[int]] = {}  # by word, which documents hold it
        for place, count in enumerate(self._counts):
            for word in count:
                self._holders.setdefault(word, []).append(place)
        mean = sum(map(Counter.total, self._counts)) / max(1, len(documents)) or 1.0
        self._norms = [K1 * (1 - B + B * count.total() / mean) for count in self._counts]

    def score_all(self, query: str) -> list[float]:
        """The score of each document, 0 for one that holds no word of the query."""
        return [math.fsum(shares.values()) for shares in self.score_words(query)]

    def score_words(self, query: str) -> list[dict[str, float]]:
        """Of each document the share of its score that each word of the query has; words that it lacks are left out."""
        scores = [dict[str, float]() for _ in self._counts]
        for word, uses in Counter(_WORD.findall(query)).items():
            holders = self._holders.get(word, ())
            weight = uses * math.log(1 + (len(scores) - len(holders) + 0.5) / (len(holders) + 0.5))
            for place in holders:
                count = self._counts[place][word]
                scores[place][word] = weight * count * (K1 + 1) / (count + self._norms[place])
        return scores
