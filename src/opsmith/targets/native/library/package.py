"""The frame of a library in any compiled language: operators as modules, the runtime, the tests.

A language adds its sources, what builds them, and the text of `_library.py`, which makes LIBRARY: its `Programs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opsmith.targets.native.library.module import OperatorEntry, choose_variable, write_module
from opsmith.targets.vendoring import vendor_modules

_OPERATOR, _PROOF = "opsmith.targets.native.library.operator", "opsmith.targets.native.library.proof"
_TESTS = '''
"""Every operator on the inputs that its verdict rests on: all stated shape sets, seeds and hand-made inputs.

Expected values come from the PyTorch reference of the operator's task; limits are those of the verifier.
"""

import pytest
import torch

from {runtime}.targets.operator_error import OperatorError
from {name}_proof.targets.native.library import proof
from {name}._library import LIBRARY
{imports}

LACK = LIBRARY.explain_lack()
pytestmark = pytest.mark.skipif(bool(LACK), reason=LACK)
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
    proof.check_operation(operator)


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
class LibraryFrame:
    """What one language's libraries have of their own."""

    language: str  # in words
    programs: str  # the module whose `Programs` run them: vendored with all that it imports
    library: str  # the text of `_library.py`


def write_frame(
    name: str, entries: Sequence[OperatorEntry], places: Sequence[str], frame: LibraryFrame
) -> dict[str, str]:
    """Path -> text of all that is not a language's own. `places`: in words, where each operator's program lies."""
    runtime, own = f"{name}._runtime", (_OPERATOR, frame.programs)  # torch is all they need
    proof = vendor_modules(f"{name}_proof", (_PROOF,), runtime, own)
    files = {f"{name}/_runtime/{path}": text for path, text in vendor_modules(runtime, own).items()}
    files |= {f"tests/{name}_proof/{path}": text for path, text in proof.items()}
    files[f"{name}/__init__.py"] = _write_front(name, entries)
    files[f"{name}/_library.py"] = frame.library
    files[f"{name}/operators/__init__.py"] = '"""One module for each operator."""\n'
    for entry, place in zip(entries, places, strict=True):
        files[f"{name}/operators/{entry.name}.py"] = write_module(entry, name, frame.language, place)
    files["tests/test_operators.py"] = _write_tests(name, entries)
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
    texts = {"imports": "\n".join(imports), "rows": "\n".join(rows), "secrets": "\n".join(secrets)}
    return _TESTS.format(name=name, runtime=f"{name}._runtime", **texts)
