"""What a task is about, in the words of its file: its first comment, else the operations of its PyTorch reference.

A comment that begins with the name of a key (`margins`: ...) speaks of that key, not of the task.

>>> describe_text("# Softmax along every row. In place.\\nproblem: softmax\\n")
'Softmax along every row.'
>>> describe_text("reference: |\\n  def f(x, w):\\n      return torch.relu(x @ w)\\n")
'in PyTorch: relu, matrix product'
"""

from __future__ import annotations

import re

_KEY = re.compile(r"^([a-z_]\w*):", re.MULTILINE)
_COMMENT = re.compile(r"\A(?:#.*\n)+")
_SENTENCE = re.compile(r"(.*?[.])(?:\s|$)", re.DOTALL)
_REFERENCE = re.compile(r"^( *)(?:data_transform:|reference: *\|.*)\n((?:\1[ -].*\n|\s*\n)+)", re.MULTILINE)
_OPERATION = re.compile(
    r"(?<!def )(?<![\w.])(?:torch\.)?(?:nn\.functional\.|F\.|special\.)?([a-z_]\w*)\(|(?<=\S) (@) (?=\S)"
)
_METHOD = re.compile(r"\.([a-z_]\w*)\(")
_PLUMBING = frozenset(
    ["zeros_like", "ones_like", "arange", "zeros", "ones", "tensor", "range", "len", "int", "float", "zip", "enumerate"]
)
MOST = 6  # operations that are named


def describe_text(text: str) -> str:
    """One line; empty where the file says nothing and has no reference."""
    comment = _COMMENT.match(text)
    words = " ".join(line.lstrip("# ") for line in comment[0].splitlines()) if comment else ""
    if words and not words.startswith("`"):
        sentence = _SENTENCE.match(words)
        return sentence[1] if sentence else words
    names = list_operations(text)
    more = ", ..." if len(names) > MOST else ""
    return f"in PyTorch: {', '.join(names[:MOST])}{more}" if names else ""


def list_operations(text: str) -> list[str]:
    """The operations of a file's references, each once, in their order."""
    reference = "\n".join(match[2] for match in _REFERENCE.finditer(text))
    calls = [(match.start(), match[1] or "matrix product") for match in _OPERATION.finditer(reference)]
    calls += [(match.start(), match[1]) for match in _METHOD.finditer(reference)]
    names = dict.fromkeys(name for _, name in sorted(calls))
    defined = set(re.findall(r"def (\w+)\(", reference))
    return [name for name in names if name not in _PLUMBING | defined]


def split_sections(text: str) -> dict[str, str]:
    """The top-level keys of a task file, each with its lines as they stand there.

    >>> split_sections("# A sum.\\nproblem: sum\\ninputs:\\n  - x\\n")
    {'problem': 'problem: sum', 'inputs': 'inputs:\\n  - x'}
    """
    starts = [*_KEY.finditer(text)]
    ends = [*(match.start() for match in starts[1:]), len(text)]
    return {match[1]: text[match.start() : end].rstrip() for match, end in zip(starts, ends, strict=True)}
