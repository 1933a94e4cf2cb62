"""A task as bare Python, without structural IR: what the paper's `Single-WS` shows a model (its figure 19).

The pieces are those of the generated test script, less what only the verifier needs (shape sets, margins, hand-made
inputs, checks of the program's text): a test at the base sizes that pytest runs once `body` is written. The base
prompt is the structural one's own text with every example written this way, so that neither says what the other does
not. `bare_read` is the inverse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import yaml

from opsmith.targets.step.codegen.parts import (
    body_text,
    data_text,
    fn_text,
    global_text,
    pin_size,
    reference_text,
    streams_text,
    taken_names,
)
from opsmith.targets.step.codegen.text import dims_code, type_code
from opsmith.targets.step.ir import read_spec, write_spec
from opsmith.targets.step.ir.code import SIZE_SUFFIX
from opsmith.targets.step.language.program import dedent_program
from opsmith.targets.step.language.spec import OutputSpec, TaskSpec

PLACE = "...  # write this\n"  # stands where the program will be
REPLY = "Reply format."  # opens the paragraph of the structural prompt that says how to answer
ANSWER = """
    Reply format. Python in one fenced block: the whole function `body`, its parameters the streams of prepare() in
    their order, and nothing else:
    ```
    def body(E0):
        E1 = step.Map(fn=fn_abs).apply(E0)
        return E1
    ```
"""
WORDS = {  # what the base prompt calls the keys of YAML, and what they are here; each stands in it exactly once
    "Given a task (inputs, fns the hardware offers, outputs), answer with its missing `impl`.": (
        "Given a test (streams, fns the hardware offers, output types), answer with its missing `body`."
    ),
    "A fn without init maps": "A fn without getInit maps",
    "A fn with init folds": "A fn with getInit folds",
    "Its input_dtype must": "Its first type must",
    "Look at data_transform for": "Look at reference() for",
    "a fn with init in Map": "a fn with getInit in Map",
    "zeros gives init": "zeros gives what getInit gives",
}
_TEST = """
def test():
    results = body(*prepare())
    results = results if isinstance(results, tuple) else (results,)
    for result, (name, (dtype, dims)) in zip(results, output_type.items(), strict=True):
        assert (result.dtype, result.shape) == (dtype, dims)
        for tensor, wanted in zip(result.data, reference()[name], strict=True):
            torch.testing.assert_close(tensor, wanted, **tolerance.get(name, {}))
""".strip("\n")


def bare_task(spec: TaskSpec, source: str | None) -> str:
    """The test of a task with this program; None: with its place. `spec` is what a prompt shows of the task."""
    program = PLACE if source is None else dedent_program(source).strip("\n") + "\n"
    sections = [
        "import torch\nfrom opsmith import step",
        _write_sizes(spec),
        global_text(spec),
        data_text(spec),
        *(fn_text(fn, taken_names(spec)) for fn in spec.fns),
        streams_text(spec),
        reference_text(spec),
        _write_outputs(spec),
        body_text(spec, program),
        _TEST,
    ]
    return "\n\n".join(section.strip("\n") for section in sections if section) + "\n"


def _write_sizes(spec: TaskSpec) -> str:
    rows = [f'{name} = step.Dim("{name}", {size})' for name, size in spec.sizes.items()]
    rows += [pin_size(name) for name in spec.sizes]
    return "\n".join([*rows, f"ctx = step.Context({{{', '.join(f'{n}: {n}{SIZE_SUFFIX}' for n in spec.sizes)}}})"])


def _write_outputs(spec: TaskSpec) -> str:
    types = [f'    "{out.name}": ({type_code(out.dtype)}, {dims_code(out.dims)}),' for out in spec.outputs]
    limits = [
        f'"{out.name}": {{"rtol": {out.rtol or 0.0!r}, "atol": {out.atol or 0.0!r}}}' for out in _list_toleranced(spec)
    ]
    return "\n".join(["output_type = {", *types, "}", f"tolerance = {{{', '.join(limits)}}}"])


def _list_toleranced(spec: TaskSpec) -> list[OutputSpec]:
    """The outputs that have a tolerance of their own."""
    return [output for output in spec.outputs if output.rtol is not None or output.atol is not None]


# -------------------------------------------------------------------- the base prompt
@lru_cache(maxsize=1)
def bare_prompt(structural: str) -> str:
    """The base prompt in bare Python, from the structural one."""
    data = yaml.safe_load(structural)
    head, _, _ = data["general"]["desc"].partition(REPLY)
    sections = [head.rstrip("\n") + "\n\n" + dedent_program(ANSWER).strip("\n")]
    sections += [_write_section(entry) for entry in (*data["ops"], *data["patterns"])]
    text = "\n\n".join(sections) + "\n"
    for words, instead in WORDS.items():
        assert text.count(words) == 1, f"the base prompt says {words!r} {text.count(words)} times"
        text = text.replace(words, instead)
    return text


def _write_section(entry: Mapping[str, Any]) -> str:
    return "\n\n".join([f"# {entry['name']}", entry["desc"].rstrip("\n"), *_write_examples(entry["examples"])])


def _write_examples(examples: list[Mapping[str, Any]]) -> Iterator[str]:
    for example in examples:
        text = yaml.safe_dump({key: value for key, value in example.items() if key != "impl"}, sort_keys=False)
        spec = read_spec(write_spec(read_spec(text)))  # as a task's text is shown
        yield fence_script(bare_task(spec, example["impl"]))


def fence_script(script: str) -> str:
    return f"```python\n{script}```"
