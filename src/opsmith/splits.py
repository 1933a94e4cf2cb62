"""How a task is split into smaller ones: what planners write, targets check and join, and the store keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Border:
    """A value that passes from one part of a split to others: the contract of who makes it with who takes it."""

    name: str
    dtype: str  # as the language writes it: an element type, a tensor's type
    dims: tuple[str, ...]  # in symbols, as the language orders them


@dataclass(frozen=True)
class PlanNode:
    """One part of a split: a smaller operator with a reference and contracts of its own."""

    name: str  # an identifier
    takes: tuple[str, ...]  # inputs of the task, and borders of earlier nodes
    gives: tuple[Border, ...]
    code: str  # PyTorch statements that read `input_data['X']` of what it takes and assign the names that it gives
    fns: tuple[str, ...] = ()  # that are offered; (): all of the task's


@dataclass(frozen=True)
class Split:
    """A task as a graph of smaller ones, in the order in which data flows."""

    nodes: tuple[PlanNode, ...]
    outputs: tuple[str, ...]  # the borders that are the task's outputs, in order


def split_from_json(data: Mapping[str, Any]) -> Split:
    """The inverse of `to_json` for splits."""
    return Split(tuple(map(_read_node, data["nodes"])), tuple(data["outputs"]))


def _read_node(data: Mapping[str, Any]) -> PlanNode:
    gives = tuple(Border(border["name"], border["dtype"], tuple(border["dims"])) for border in data["gives"])
    return PlanNode(data["name"], tuple(data["takes"]), gives, data["code"], tuple(data["fns"]))
