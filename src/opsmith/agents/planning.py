"""The planner: a task that stays unsolved -> a split of it. Pure functions: the caller sends the messages.

`request_plan` writes the messages, `read_plan` reads the answer. Two messages. `system` says what a split is and how
the language writes contracts, the same text for every task of a run. `user` is one YAML mapping: `task`, `reason`,
`earlier` (splits that did not help, each with why), `refused` (the programs that came nearest to a contract, with what
was found) and `answer`; what is empty is left out. An answer with faults goes back once with them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opsmith.agents.fences import list_fenced_blocks
from opsmith.agents.joining import nest_split
from opsmith.agents.prompt import indent_lines
from opsmith.agents.reply import MAX_REPLY
from opsmith.agents.yaml_text import nest_list, write_block, write_mapping, write_scalar, write_text
from opsmith.errors import UsageError
from opsmith.models import Message
from opsmith.models.answers import strip_thoughts
from opsmith.models.bounded_yaml import load_bounded
from opsmith.models.parts import replace_surrogates
from opsmith.records import Diagnostic, Task
from opsmith.splits import Border, PlanNode, Split
from opsmith.targets import Target
from opsmith.targets.protocols import Contracted, Planned

ANSWER = "one split"  # what the prompt asks for
MAX_NODES = 16
MAX_BORDERS = 8  # of one node, and outputs
MAX_TAKEN = 16
MAX_CODE = 4_000  # characters of one node's statements
MAX_NAME = 60
MAX_TYPE = 200
MAX_DIMS = 12
MAX_BLOCKS = 8  # fenced blocks looked at, the last ones
MAX_SHOWN = 3  # earlier splits, and refused programs
MAX_FINDINGS = 2_000  # characters of what was found about one program
_KEYS = frozenset(("nodes", "outputs"))
_NODE_KEYS = frozenset(("name", "takes", "gives", "code", "fns"))

_ODD_STATEMENTS = (  # that no statement on tensors needs
    *(ast.Import, ast.ImportFrom, ast.Raise, ast.Try, ast.With, ast.Assert, ast.Global, ast.Nonlocal),
    *(ast.ClassDef, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await, ast.Yield, ast.YieldFrom, ast.Delete),
)
_ODD_WORD = re.compile(  # of Python, and of what modules lend of others; private ones
    "open|exec|eval|compile|[gs]etattr|delattr|globals|locals|vars|dir|input|breakpoint|format|format_map|os|sys|io|"
    "builtins|importlib|inspect|gc|types|ctypes|subprocess|socket|pathlib|pickle|warnings|functools|load|save|"
    "from_file|tofile|fromfile|memmap|loadtxt|genfromtxt|hub|ops|classes|utils|jit|library|serialization|storage|"
    "package|multiprocessing|distributed|overrides|fx|compiler|cpp_extension|_.+|.*__"
)

_SYSTEM = """\
role: |
  You plan. An operator is to be written in a small language, and nobody has written a right program for it yet. You
  answer with ONE split of it: smaller operators (nodes) whose programs, written one by one, are joined to one program
  for the whole.

  What you are given. `task`: what the operator computes, with its PyTorch reference and the functions that programs
  may use. `reason`: why it is split. `earlier`: splits that did not help, and why. `refused`: the programs that came
  nearest to a node's contract, with what was found about them.

  What a node is. `name`: an identifier. `takes`: names of the task's inputs, or of what earlier nodes give. `gives`:
  the values that it makes, each with its contract: `name`, `dtype` and `dims`, as the language writes types, in
  symbols. `code`: PyTorch statements that read `input_data['X']` of what it takes (and of parameters), and assign each
  name that it gives. `fns`: the task's functions that its program may use; left out, all of them.
  `outputs`: which of these names are the task's outputs, in order.

  How to choose. Cut where the reference itself computes one thing after another. Each node does work of its own: none
  passes its input on, none is the whole task, none is one function alone. All nodes together compute what the
  reference computes, each output is given by exactly one node, and what a node gives is taken or is an output. Fewer
  nodes are better, as long as each is clearly easier than the whole.

  Reply format. One fenced YAML mapping and nothing else:
  ```yaml
  nodes:
  - name: scores
    takes: [Q, K]
    gives:
    - name: S
      dtype: fp32
      dims: [N, M]
    fns: [fn_dot]
    code: |
      S = input_data['Q'] @ input_data['K'].T
  outputs: [S]
  ```
"""


@dataclass(frozen=True)
class EarlierSplit:
    """A split that did not help."""

    split: Split
    reason: str


@dataclass(frozen=True)
class RefusedProgram:
    """A program that came near to a node's contract."""

    node: str
    source: str
    findings: str


@dataclass(frozen=True)
class PlanBrief:
    """What a planner is told of one task."""

    task: Task
    reason: str
    earlier: tuple[EarlierSplit, ...] = ()  # the last one last
    refused: tuple[RefusedProgram, ...] = ()  # the nearest first


def require_planner(target: Target) -> None:
    """Raises UsageError for a language whose tasks no model can be asked to split."""
    if not isinstance(target, Planned):
        raise UsageError(f"plan llm: target {target.name!r} cannot split its tasks; try --plan none")
    if not isinstance(target, Contracted):
        raise UsageError(f"plan llm: target {target.name!r} does not say how contracts are written; try --plan static")


def request_plan(target: Target, brief: PlanBrief) -> tuple[Message, ...]:
    """The messages of one call of the planner. Raises UsageError for a language that has no planner."""
    require_planner(target)
    assert isinstance(target, Contracted)
    system = f"{_SYSTEM}contracts: {write_block(target.describe_contracts())}\n"
    return Message("system", system), Message("user", _write_user(brief))


def request_better_plan(
    messages: tuple[Message, ...], reply: str, problem: str, faults: Sequence[Diagnostic] = ()
) -> tuple[Message, ...]:
    """The messages with which an answer goes back, with what is wrong with it."""
    findings = "\n".join(fault.block() for fault in faults) or problem
    text = f"faults: {write_block(findings)}\n" + write_mapping({"answer": write_scalar(ANSWER)})
    return *messages, Message("assistant", reply), Message("user", text)


def _write_user(brief: PlanBrief) -> str:
    earlier = [f"why: {write_text(split.reason)}\n{nest_split(split.split)}" for split in brief.earlier[-MAX_SHOWN:]]
    refused = [
        {
            "node": write_scalar(program.node),
            "program": write_block(program.source),
            "findings": write_block(program.findings[:MAX_FINDINGS]),
        }
        for program in brief.refused[:MAX_SHOWN]
    ]
    return (
        f"task:\n{indent_lines(brief.task.prompt_text)}"
        + write_mapping({"reason": write_text(brief.reason)})
        + nest_list("earlier", earlier)
        + nest_list("refused", refused)
        + write_mapping({"answer": write_scalar(ANSWER)})
    )


class _PlanError(Exception):
    """What is wrong with the form of an answer, in words."""


def read_plan(text: str) -> Split | str:
    """The split in a planner's answer, or in words why there is none. Bounded in time and memory, and raises nothing.

    >>> read_plan("I would split it in two.")
    'no YAML mapping of `nodes` and `outputs`'
    """
    if len(text) > MAX_REPLY:
        return f"a reply of {len(text)} characters; expected at most {MAX_REPLY}"
    answer = strip_thoughts(replace_surrogates(text))
    blocks = list_fenced_blocks(answer)
    problem = "no YAML mapping of `nodes` and `outputs`"
    for block in [*reversed(blocks[-MAX_BLOCKS:]), answer]:
        mapping = load_bounded(block)
        if isinstance(mapping, dict) and mapping.keys() >= _KEYS:
            try:
                return _read_split(mapping)
            except _PlanError as error:
                problem = str(error)
    return problem


def _read_split(mapping: Mapping[str, Any]) -> Split:
    _refuse_others(mapping, _KEYS, "the split")
    nodes = tuple(_read_node(node) for node in _read_list(mapping["nodes"], "nodes", MAX_NODES))
    names = [node.name for node in nodes]
    _refuse_twins(names, "nodes")
    _refuse_twins([border.name for node in nodes for border in node.gives], "values that nodes give")
    outputs = tuple(_read_name(name, "outputs") for name in _read_list(mapping["outputs"], "outputs", MAX_BORDERS))
    return Split(nodes, outputs)


def _read_node(mapping: Any) -> PlanNode:
    if not isinstance(mapping, dict) or not {"name", "takes", "gives", "code"} <= mapping.keys():
        raise _PlanError("a node that is no mapping of `name`, `takes`, `gives` and `code`")
    name = _read_name(mapping["name"], "a node's name")
    _refuse_others(mapping, _NODE_KEYS, f"node {name}")
    takes = tuple(_read_name(take, f"{name}: takes") for take in _read_list(mapping["takes"], "takes", MAX_TAKEN))
    gives = tuple(_read_border(border, name) for border in _read_list(mapping["gives"], "gives", MAX_BORDERS))
    fns = mapping.get("fns") or []
    offered = tuple(_read_name(fn, f"{name}: fns") for fn in _read_list(fns, "fns", MAX_TAKEN * 2, least=0))
    code = _read_text(mapping["code"], f"{name}: code", MAX_CODE)
    _refuse_odd_code(code, f"{name}: code")
    return PlanNode(name, takes, gives, code, offered)


def _refuse_odd_code(code: str, where: str) -> None:
    """Statements on tensors need no more than this lets pass. What runs them is confined; but what they could say in an
    exception goes back to the model, so that they shall read no files and raise none."""
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # who checks the split says where
    for node in nodes:
        word = next((word for word in _list_words(node) if _ODD_WORD.fullmatch(word)), "")
        if isinstance(node, _ODD_STATEMENTS) or word:
            raise _PlanError(f"{where}: {word or type(node).__name__.lower()}; expected plain statements on tensors")


def _list_words(node: ast.AST) -> Iterator[str]:
    """The names in a node."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr


def _read_border(mapping: Any, node: str) -> Border:
    if not isinstance(mapping, dict) or not {"name", "dtype", "dims"} <= mapping.keys():
        raise _PlanError(f"{node}: gives: an entry that is no mapping of `name`, `dtype` and `dims`")
    name = _read_name(mapping["name"], f"{node}: gives")
    _refuse_others(mapping, frozenset(("name", "dtype", "dims")), f"{node}: gives {name}")
    dims = tuple(_read_text(dim, f"{name}: dims", MAX_NAME) for dim in _read_list(mapping["dims"], "dims", MAX_DIMS, 0))
    return Border(name, _read_type(mapping["dtype"], name), dims)


def _read_type(value: Any, name: str) -> str:
    """As the language writes it; a list of fields as YAML has it."""
    if isinstance(value, list):
        value = "[" + ", ".join(_read_text(entry, f"{name}: dtype", MAX_NAME) for entry in value[:MAX_BORDERS]) + "]"
    return _read_text(value, f"{name}: dtype", MAX_TYPE)


def _read_list(value: Any, where: str, limit: int, least: int = 1) -> list[Any]:
    if not isinstance(value, list) or not least <= len(value) <= limit:
        count = f"{len(value)} entries" if isinstance(value, list) else "no list"
        raise _PlanError(f"{where}: {count}; expected a list of {least} to {limit}")
    return value


def _read_name(value: Any, where: str) -> str:
    text = _read_text(value, where, MAX_NAME)
    if not text.isidentifier() or not text.isascii():
        raise _PlanError(f"{where}: {text[:MAX_NAME]!r}; expected an identifier")
    return text


def _read_text(value: Any, where: str, limit: int) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > limit:
        raise _PlanError(f"{where}: expected a text of at most {limit} characters")
    return value.strip("\n") + "\n" if "\n" in value else value.strip()


def _refuse_others(mapping: Mapping[str, Any], keys: frozenset[str], where: str) -> None:
    unknown = sorted(mapping.keys() - keys)
    if unknown:
        raise _PlanError(f"{where}: unknown key {unknown[0][:MAX_NAME]!r}; expected {', '.join(sorted(keys))}")


def _refuse_twins(names: Sequence[str], what: str) -> None:
    if len(set(names)) < len(names):
        raise _PlanError(f"{what}: two of one name; expected names that are all different")
