"""Names of a definition in a problem file: the same, unless they are taken there or are none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from opsmith.imports.flashinfer.dataset import list_variable
from opsmith.imports.flashinfer.formats import Definition
from opsmith.problems.files.entries import is_name


@dataclass(frozen=True)
class ChosenNames:
    """What a problem file calls what a definition names."""

    problem: str
    tensors: Mapping[str, str]  # inputs and outputs
    dims: Mapping[str, str]  # axes that vary


def choose_names(definition: Definition, code_names: Iterable[str]) -> ChosenNames:
    """Names that nothing else has, neither in the file nor at the top level of the reference."""
    names: set[str] = {"run"}
    tensors = {name: choose_name(name, names) for name in (*definition.inputs, *definition.outputs)}
    dims = {name: choose_name(name, names) for name in list_variable(definition)}
    return ChosenNames(choose_name(definition.name, {*names, *code_names}), tensors, dims)


def choose_name(text: str, names: set[str]) -> str:
    """A name of Python much like a text, which is taken from now on.

    >>> choose_name("rms-norm.h4", set()), choose_name("state", set()), choose_name("2nd", set())
    ('rms_norm_h4', 'state_', 'x2nd')
    """
    name = re.sub(r"\W", "_", text, flags=re.ASCII)[:80]
    name = f"x{name}" if not name or name[0].isdigit() else name
    while not is_name(name) or name in names:
        name += "_"
    names.add(name)
    return name
