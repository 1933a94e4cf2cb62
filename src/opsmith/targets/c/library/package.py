"""All files of a library of C programs: sources, headers, builds, operators as modules, the runtime, the tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from opsmith.targets.c.library.building import write_makefile, write_setup
from opsmith.targets.c.library.header import write_isa_unit, write_public_header, write_unit_header
from opsmith.targets.c.library.sized import write_choosing_unit
from opsmith.targets.native.flags import BuildFlags, Isa, find_isa
from opsmith.targets.native.library.module import OperatorEntry, choose_variable, write_module
from opsmith.targets.native.task import read_native_task
from opsmith.targets.programs import Solved
from opsmith.targets.vendoring import vendor_modules

LANGUAGE = "C"
VENDORED = ("opsmith.targets.native.library.operator", "opsmith.targets.native.library.proof")  # torch is all they need
_LIBRARY = '''
"""The shared object with all programs."""

from pathlib import Path

from {name}._runtime.targets.native.library.shared_object import SharedObject

LIBRARY = SharedObject("{name}", Path(__file__).parent / "lib{name}.so")
'''.lstrip("\n")
_TESTS = '''
"""Every operator on the inputs that its verdict rests on: all stated shape sets, seeds and hand-made inputs.

Expected values come from the PyTorch reference of the operator's task; limits are those of the verifier.
"""

import pytest
import torch

from {runtime}.targets.operator_error import OperatorError
from {runtime}.targets.native.library import proof
{imports}

torch.set_num_threads(1)  # the tensors are small: several threads would wait for each other

OPERATORS = {{
{rows}
}}
SECRETS = {{  # what the sizes that no file states are drawn from
{secrets}
}}
TRIALS = [
    pytest.param(name, number, id=f"{{name}}-{{trial}}")
    for name, (operator, _) in OPERATORS.items()
    for number, trial in enumerate(proof.list_trial_names(operator))
]


@pytest.mark.parametrize(("name", "trial"), TRIALS)
def test_the_reference_agrees(name, trial):
    failures = proof.find_failures(*OPERATORS[name], trial)
    assert not failures, "\\n".join(failures)


@pytest.mark.parametrize("name", OPERATORS)
def test_the_reference_agrees_at_sizes_that_no_file_states(name):
    failures = proof.find_hidden_failures(*OPERATORS[name], SECRETS[name])
    assert not failures, "\\n".join(failures)


@pytest.mark.parametrize("name", OPERATORS)
def test_strided_inputs_and_odd_addresses_change_nothing(name):
    failures = proof.find_layout_failures(*OPERATORS[name])
    assert not failures, "\\n".join(failures)


@pytest.mark.parametrize("name", OPERATORS)
def test_torch_accepts_the_operator(name):
    operator, _ = OPERATORS[name]
    torch.library.opcheck(operator.operation, proof.make_arguments(operator))


@pytest.mark.parametrize("name", OPERATORS)
def test_a_graph_with_the_operator_gives_the_same(name):
    operator, function = OPERATORS[name]
    inputs, named = proof.make_call(operator)
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(*inputs, **named), function(*inputs, **named), equal_nan=True)


@pytest.mark.parametrize("name", OPERATORS)
def test_what_does_not_fit_is_refused(name):
    operator, function = OPERATORS[name]
    inputs, named = proof.make_call(operator)
    with pytest.raises(OperatorError, match="; expected "):
        function(*(tensor.unsqueeze(0) for tensor in inputs), **named)
    with pytest.raises(OperatorError, match="; expected torch"):
        function(*(tensor.to(torch.complex64) for tensor in inputs), **named)
'''.lstrip("\n")


@dataclass(frozen=True)
class SizedUnit:
    """One of an operator's several programs."""

    name: str  # of its files and, behind the package's, its symbol
    source: str
    flags: BuildFlags


@dataclass(frozen=True)
class CProgram:
    """An operator to be packaged: what its module says, its source, and how it is built."""

    entry: OperatorEntry
    source: str
    flags: BuildFlags
    by_size: tuple[SizedUnit, ...] = ()  # several programs: `source` is what chooses among them

    @property
    def units(self) -> dict[str, BuildFlags]:
        """What is compiled, by name, and how."""
        return {self.entry.name: self.flags, **{unit.name: unit.flags for unit in self.by_size}}


def write_package(name: str, operators: Sequence[Solved]) -> dict[str, str]:
    """Path -> text, see `Packaged`."""
    return write_programs(name, [_read_program(name, operator) for operator in operators])


def _read_program(package: str, solved: Solved) -> CProgram:
    problem, options = read_native_task(solved.task.text)
    entry = OperatorEntry(solved.name, solved.task.id, problem, solved.facts, options.threads, solved.secret)
    units = tuple(
        SizedUnit(f"{solved.name}__{number}", program.source, options.choose_flags(find_judged_isa(program.build)))
        for number, program in enumerate(solved.by_size)  # two underscores: no operator is called so
    )
    symbols = [f"{package}_{unit.name}" for unit in units]
    sizes = [program.sizes for program in solved.by_size]
    source = write_choosing_unit(symbols, problem, sizes) if units else solved.source
    return CProgram(entry, source, options.choose_flags(find_judged_isa(solved.build)), units)


def find_judged_isa(build: str) -> Isa:
    """The one that a verdict names among its flags; that of this machine where it names none."""
    match = re.search(r"(?<!\S)-march=(\S+)", build)
    return Isa(match[1]) if match else find_isa()


def write_programs(name: str, programs: Sequence[CProgram]) -> dict[str, str]:
    """The files of a package with these programs."""
    runtime = f"{name}._runtime"
    entries = [program.entry for program in programs]
    flags = {unit: own for program in programs for unit, own in program.units.items()}
    files = {f"{name}/_runtime/{path}": text for path, text in vendor_modules(runtime, VENDORED).items()}
    files |= _write_sources(name, programs)
    files[f"{name}/__init__.py"] = _write_front(name, entries)
    files[f"{name}/_library.py"] = _LIBRARY.format(name=name)
    files[f"{name}/operators/__init__.py"] = '"""One module for each operator."""\n'
    for entry in entries:
        place = f"csrc/{entry.name}.c, {name}_{entry.name} in lib{name}.so"
        files[f"{name}/operators/{entry.name}.py"] = write_module(entry, name, LANGUAGE, place)
    files["setup.py"], files["Makefile"] = write_setup(name, flags), write_makefile(name, flags)
    files["MANIFEST.in"] = "include Makefile manifest.json\n"
    files["tests/test_operators.py"] = _write_tests(name, entries)
    return files


def _write_sources(name: str, programs: Sequence[CProgram]) -> dict[str, str]:
    files = {f"{name}/include/{name}.h": write_public_header(name, [program.entry for program in programs])}
    files[f"{name}/csrc/_isa.c"] = write_isa_unit(name)
    for program in programs:
        files[f"{name}/csrc/{program.entry.name}.c"] = program.source
        files[f"{name}/csrc/{program.entry.name}.h"] = write_unit_header(name, program.entry)
        for unit in program.by_size:
            files[f"{name}/csrc/{unit.name}.c"] = unit.source
            files[f"{name}/csrc/{unit.name}.h"] = write_unit_header(name, program.entry, unit.name)
    return files


def _write_front(name: str, entries: Sequence[OperatorEntry]) -> str:
    imports = [f"from {name}.operators.{entry.name} import {entry.name}" for entry in entries]
    names = [f'    "{exported}",' for exported in ("OperatorError", *(entry.name for entry in entries))]
    error = f"from {name}._runtime.targets.operator_error import OperatorError"
    head = f'"""{name}: operators on torch tensors, each tested against its reference. Made by `opsmith export`."""\n'
    return "\n".join([head, error, *imports, "", "__all__ = [", *names, "]", ""])


def _write_tests(name: str, entries: Sequence[OperatorEntry]) -> str:
    imports = [f"from {name}.operators import {entry.name} as _{entry.name}" for entry in entries]
    rows = [
        f'    "{entry.name}": (_{entry.name}.{choose_variable(entry.problem)}, _{entry.name}.{entry.name}),'
        for entry in entries
    ]
    secrets = [f'    "{entry.name}": {entry.secret!r},' for entry in entries]
    texts = {"imports": imports, "rows": rows, "secrets": secrets}
    return _TESTS.format(runtime=f"{name}._runtime", **{key: "\n".join(lines) for key, lines in texts.items()})
