"""`opsmith new-task --target`: a problem file from a PyTorch function or module, and the frame of a program for it.

The function is written as a file of KernelBench's form, whose sizes are constants, and examined as such a file is: in a
confined worker, where sizes are moved to see which vary, what follows from them, and what must be equal. A size that
cannot move alone is tried as a number among the values (`normalized_shape=[8]`), and as a multiple of another. Then the
reference becomes the author's own function again, and its smallest sizes are looked for.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from opsmith.errors import UsageError
from opsmith.imports.foreign_code import CodeRefusalError
from opsmith.imports.kernelbench.source import read_module
from opsmith.imports.worker import ImportWorker, ImportWorkers, TrialError
from opsmith.problems.constraints import follow_constraints, list_following, satisfies_all
from opsmith.problems.dtypes import NARROW_FLOATS
from opsmith.problems.files.canonical import write_problem
from opsmith.problems.files.entries import RESERVED_IN_PROBLEMS, is_name
from opsmith.problems.files.reading import ProblemFile, read_problem
from opsmith.problems.files.writing import quote_text
from opsmith.problems.problem import Problem
from opsmith.records import printable
from opsmith.scaffold.arguments import Arguments, DimText, TensorArgument, read_arguments
from opsmith.scaffold.dims import LETTERS, name_axes
from opsmith.scaffold.draft import Draft, DraftRequest, find_capitals
from opsmith.scaffold.functions import Function, find_function
from opsmith.scaffold.probe import call_form, find_bounds, torch_type
from opsmith.scaffold.source import write_standalone
from opsmith.targets import get_target
from opsmith.targets.problem import PROBLEM
from opsmith.targets.protocols import Adapting, Framed

LIMITS = {"max_bytes": 8_000_000, "max_operations": 400_000_000}  # of the largest sizes that are timed
SECONDS = 60.0  # for one examination
SMALLEST_SECONDS = 20.0  # for the smallest sizes
SMALL = 16  # beyond which no smallest size is looked for, but for those of other dims
MOST_VARIANTS = 12
LETTER_SIZES = {"M": 24, "N": 40, "K": 56, "D": 64}  # examples of dims that were given by name

_ENTRY = re.compile(r"- name: (\w+)\n    dtype: (\w+)\n    shape: (\[.*\])\n(?:    data: \|-\n      (.+)\n)?(?!    )")

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class _Source:
    """The function with all that it is called with, as texts in which letters are sizes."""

    function: Function
    text: str  # its own, which stands alone; "": it is PyTorch's
    tensors: Sequence[TensorArgument]
    axes: Sequence[Sequence[str]]  # of each tensor
    sizes: Sizes  # of the letters
    values: Mapping[str, str]  # which stay as they are
    scalars: Mapping[str, float]
    reserved: frozenset[str] = frozenset()  # letters that the text itself has a meaning for
    floats: str = "torch.randn"

    def write_call(self, head: str, names: Mapping[str, str], sizes: Sizes) -> str:
        """Of the function, where tensors have these names or their own and letters of `sizes` are numbers."""
        made_with = self.function.made_with
        own = {name: value for name, value in self.values.items() if made_with is None or name not in made_with}
        positional, keywords = call_form(self.function, Arguments(tuple(self.tensors), {**own, **self.scalars}))
        words = [names.get(name, name) for name in positional]
        words += [f"{name}={_place_sizes(own.get(name, names.get(name, name)), sizes)}" for name in keywords]
        return f"{head}({', '.join(words)})"

    def write_module(self) -> str:
        """As a file of KernelBench's form."""
        made_with, path = self.function.made_with, self.function.path or self.function.name
        parent = "torch.nn.Module" if made_with is None else path
        given = ", ".join(f"{name}={value}" for name, value in self.values.items() if name in (made_with or {}))
        kinds = {tensor.dtype for tensor in self.tensors if tensor.dtype in NARROW_FLOATS}
        narrow = f"        self.to({torch_type(kinds.pop())})\n" if len(kinds) == 1 and made_with is not None else ""
        making = f"    def __init__(self):\n        super().__init__({given})\n{narrow}\n" if made_with else ""
        call = self.write_call(path if made_with is None else "super().forward", {}, {})
        names = ", ".join(["self", *(tensor.name for tensor in self.tensors), *self.scalars])
        inputs = [self._write_tensor(*pair) for pair in zip(self.tensors, self.axes, strict=True)]
        return "\n".join(
            [
                *("import torch", self.text, *(f"{letter} = {size}" for letter, size in self.sizes.items())),
                f"\n\nclass Model({parent}):\n{making}    def forward({names}):\n        return {call}",
                f"\n\ndef get_inputs():\n    return [{', '.join([*inputs, *map(repr, self.scalars.values())])}]\n",
            ]
        )

    def _write_tensor(self, tensor: TensorArgument, axes: Sequence[str]) -> str:
        shape, dtype = f"({''.join(f'{axis}, ' for axis in axes)})", torch_type(tensor.dtype)
        if (data := self.write_data(tensor)) is not None:
            return f"torch.{data[:-1]}, {shape}, dtype={dtype})"
        return f"{self.floats}({shape}{'' if tensor.dtype == 'fp32' else f', dtype={dtype}'})"

    def write_data(self, tensor: TensorArgument) -> str | None:
        """Whole numbers and bools; None: floats. Indices into an axis of another tensor go as far as its letter."""
        if tensor.dtype == "bool":
            return "randint(0, 2)"
        if not tensor.is_whole:
            return None
        if tensor.high is None and tensor.dtype == "int8":
            return "randint(-128, 128)"
        low, high = find_bounds(tensor)
        own = {axis for each, axes in zip(self.tensors, self.axes, strict=True) if each is tensor for axis in axes}
        bound = next((name for name, size in self.sizes.items() if size == high + 1 and name not in own), high + 1)
        return f"randint({low}, {bound if tensor.high is not None and low == 0 else high + 1})"


def draft_problem(request: DraftRequest, target: str, workers: ImportWorkers) -> Draft:
    """A problem file, and the frame of a program in that language; `workers` are those of `ANALYSES`. Raises UsageError
    for what is no function or module, for what it does not take, and for a language that takes no problem files."""
    language = get_target(target)
    if not isinstance(language, Adapting):
        raise UsageError(
            f"target {target!r}: it takes no problem files; expected c, cuda, wgsl, metal or a language's TOML file"
        )
    function = find_function(request.function, takes_modules=True)
    name = (request.id or function.name).lower()
    with workers.open_worker() as worker:
        source, answer = _settle_sizes(worker, _make_source(function, request), name)
        file = _use_own_words(read_problem(answer["text"]), source)
        file, notes = _bound_sizes(worker, file)
    notes = [*_list_notes(source, answer, file.problem), *notes]
    head = [
        f"A draft by `opsmith new-task {request.function}`: sizes and data are yours to change.",
        *(f"NOTE {note}" for note in notes),
    ]
    text = "".join(f"# {printable(' '.join(row.split()))}\n" for row in head) + _ENTRY.sub(
        _shorten_entry, write_problem(file)
    )
    task = language.adapt_task(PROBLEM.read_task(text, file.name))
    frame = language.write_frame(task) if isinstance(language, Framed) else ""
    return Draft(file.name, text, tuple(notes), True, target, frame, getattr(language, "suffix", ""))


def _shorten_entry(match: re.Match[str]) -> str:
    """An input or output of the canonical text on one line."""
    name, dtype, shape, data = match.groups()
    given = "" if data is None else f", data: {data if data.isalpha() else quote_text(data)}"
    return f"- {{name: {name}, dtype: {dtype}, shape: {shape}{given}}}\n"


def _make_source(function: Function, request: DraftRequest) -> _Source:
    arguments = read_arguments(function, request.shapes, request.values, request.example, takes_dims=True)
    definition = function.call if isinstance(function.call, type) else None
    text = "" if function.path else write_standalone(definition or function.undecorated())
    reserved = find_capitals(text)
    naming = name_axes(arguments, reserved)
    texts = [value for value in arguments.values.values() if isinstance(value, DimText)]
    named = {*naming.given, *(letter for text in texts for letter in re.findall(r"\b[A-Z]\b", text))}
    free = (size for size in (32, 48, 20, 28, 36, 44, *range(50, 90, 4)) if size not in naming.example.values())
    sizes = naming.example | {letter: LETTER_SIZES.get(letter) or next(free) for letter in sorted(named)}
    stated = {} if function.path else function.parameters or {}
    defaults = {name: own.default for name, own in stated.items() if name not in arguments.values}
    forwarded = {name: value for name, value in arguments.values.items() if name not in (function.made_with or {})}
    numbers = {name: value for name, value in {**forwarded, **defaults}.items() if type(value) is float and value}
    scalars = {name: value for name, value in numbers.items() if math.isfinite(value)}  # 0.0 switches something off
    values = {name: repr(value) for name, value in arguments.values.items() if name not in scalars}
    axes = [[dim.text for dim in axes] for axes in naming.axes]
    return _Source(function, text, arguments.tensors, axes, sizes, values, scalars, reserved)


def _place_sizes(text: str, sizes: Sizes) -> str:
    return re.sub(r"\b[A-Z]\b", lambda match: str(sizes.get(match[0], match[0])), text)


# -- which sizes vary


def _settle_sizes(worker: ImportWorker, source: _Source, name: str) -> tuple[_Source, dict[str, Any]]:
    """The source of which most dims vary, and what was found out about it. Raises UsageError."""
    answer = _examine(worker, source, name)
    if "NaN" in answer.get("refusal", ""):
        source = replace(source, floats="torch.rand")
        answer = _examine(worker, source, name)
    if "refusal" in answer:
        shapes = ", ".join(
            f"{one.name} ({', '.join(axes)})" for one, axes in zip(source.tensors, source.axes, strict=True)
        )
        given = f"given {shapes} at {', '.join(f'{letter} = {size}' for letter, size in source.sizes.items())}"
        remedy = "other shapes, types or bounds in --shape, or --value for what is no tensor"
        raise UsageError(f"{source.function.name}: {answer['refusal']}; {given}; try: {remedy}")
    for _ in range(len(source.sizes)):
        for variant in itertools.islice(_list_variants(source, answer["fixed"]), MOST_VARIANTS):
            other = _examine(worker, variant, name)
            if _count_varying(other) > _count_varying(answer):
                source, answer = variant, other
                break
        else:
            break
    return source, answer


def _count_varying(answer: Mapping[str, Any]) -> tuple[int, int]:
    return len(answer.get("dims", ())), -len(answer.get("fixed", ()))


def _examine(worker: ImportWorker, source: _Source, name: str) -> dict[str, Any]:
    text = source.write_module()
    try:
        read_module(text)
        return worker.ask({"text": text, "name": name, "group": name, "grows": True, **LIMITS}, SECONDS)
    except (CodeRefusalError, TrialError) as error:
        return {"refusal": str(error)}


def _list_variants(source: _Source, fixed: Sequence[str]) -> Iterator[_Source]:
    """Sources in which a letter that does not vary also stands for equal numbers among the values, one or all of them,
    is a multiple of another such letter, or is two letters that are equal in the example."""
    stuck = [letter for letter in source.sizes if letter in fixed]
    for letter in stuck:
        numbers = [
            (name, node.col_offset, node.end_col_offset or 0)
            for name, text in source.values.items()
            for node in ast.walk(ast.parse(text, mode="eval"))
            if isinstance(node, ast.Constant) and type(node.value) is int and node.value == source.sizes[letter]
        ]
        for chosen in [*([number] for number in numbers), *([numbers] if len(numbers) > 1 else [])]:
            values = dict(source.values)
            for name, begin, end in sorted(chosen, key=lambda number: -number[1]):
                values[name] = values[name][:begin] + letter + values[name][end:]
            yield replace(source, values=values)
    for letter, other in itertools.permutations(stuck, 2):
        factor, rest = divmod(source.sizes[letter], source.sizes[other])
        if rest == 0 and factor > 1:
            axes = [[f"{factor}*{other}" if axis == letter else axis for axis in each] for each in source.axes]
            yield replace(
                source, axes=axes, sizes={name: size for name, size in source.sizes.items() if name != letter}
            )
    for letter in stuck:
        axes_of = [(t, a) for t, axes in enumerate(source.axes) for a, axis in enumerate(axes) if axis == letter]
        other = next(name for name in LETTERS if name not in source.sizes and name not in source.reserved)
        for count in range(1, len(axes_of)):
            for apart in itertools.combinations(axes_of[1:], count):
                axes = [
                    [other if (t, a) in apart else axis for a, axis in enumerate(each)]
                    for t, each in enumerate(source.axes)
                ]
                yield replace(source, axes=axes, sizes={**source.sizes, other: source.sizes[letter]})


# -- the problem, as its author would write it


def _use_own_words(file: ProblemFile, source: _Source) -> ProblemFile:
    """With the data of whole numbers as it was given, and a function's own text as the reference."""
    problem, function = file.problem, source.function
    fixed = {letter: size for letter, size in source.sizes.items() if letter not in problem.sizes}
    data = [_place_sizes(source.write_data(tensor) or "", fixed) for tensor in source.tensors]
    inputs = list(problem.inputs)  # weights last
    for number, text in enumerate(data):
        inputs[number] = replace(inputs[number], expression=text) if text else inputs[number]
    if function.made_with is not None:
        return replace(file, problem=replace(problem, inputs=tuple(inputs)))
    for number, tensor in enumerate(source.tensors):
        if is_name(tensor.name, RESERVED_IN_PROBLEMS):
            inputs[number] = replace(inputs[number], name=tensor.name)
    arguments = [*(tensor.name for tensor in inputs), *problem.scalars]
    reference = source.text
    if function.path or list(function.parameters or ()) != arguments:
        names = dict(zip([*(tensor.name for tensor in source.tensors), *source.scalars], arguments, strict=True))
        call = source.write_call(function.path or function.name, names, fixed)
        head = f"{reference}\n\n" if reference else ""
        reference = f"{head}def {file.name}_reference({', '.join(arguments)}):\n    return {call}\n"
    return replace(file, problem=replace(problem, inputs=tuple(inputs), reference=reference, global_code=""))


def _list_notes(source: _Source, answer: Mapping[str, Any], problem: Problem) -> list[str]:
    notes = [str(warning) for warning in answer["warnings"]]
    notes += [f"a size of {source.sizes[name]} does not vary: the function was not seen to work at others"
              for name in answer["fixed"] if name in source.sizes]  # fmt: skip
    if source.floats != "torch.randn":
        notes.append("with normal numbers the result has NaN, so the data is drawn from 0 to 1")
    for tensor in source.tensors:
        if tensor.is_whole and tensor.high is None:
            notes.append(f"{tensor.name}: {source.write_data(tensor)} is a guess; --shape says from where to where")
    undecorated = source.function.made_with is None and source.text and source.function.undecorated()
    if undecorated and undecorated is not source.function.call:
        notes.append("what decorates the function is left out")
    numbers = {name: value for name, value in source.values.items() if name in (source.function.made_with or {})}
    if plain := [f"{name}={value}" for name, value in numbers.items() if re.fullmatch(r"\d+", value)]:
        notes.append(
            f"{', '.join(plain)} do not vary; a capital letter in --value would, such as {plain[0].split('=')[0]}=K"
        )
    return notes


# -- the smallest sizes


def _bound_sizes(worker: ImportWorker, file: ProblemFile) -> tuple[ProblemFile, list[str]]:
    """The file with a constraint for every dim below whose smallest size the reference fails, and why."""
    problem, end = file.problem, time.monotonic() + SMALLEST_SECONDS
    free = [name for name in problem.sizes if name not in list_following(problem.constraints)]
    base = {name: problem.sizes[name] for name in free}

    def try_sets(sets: Sequence[Sizes]) -> list[str]:
        """What is wrong at each, "": nothing. Raises TrialError."""
        followed = [follow_constraints(problem.constraints, {**problem.sizes, **base, **sizes}) for sizes in sets]
        sound = [sizes for sizes in followed if sizes is not None and satisfies_all(problem.constraints, sizes)]
        request = {"text": write_problem(file), "sets": sound}
        trials = iter(worker.ask(request, max(1.0, end - time.monotonic()))["trials"] if sound else ())
        return [next(trials)["mistake"] if sizes in sound else "it keeps no constraint" for sizes in followed]

    constraints, notes, least = [], [], {}
    try:
        for name in free:
            others = {size - step for other, size in base.items() if other != name for step in (0, 1)}
            sizes = sorted({*range(1, SMALL + 1), *others} & {*range(1, base[name])})
            mistakes = dict(zip(sizes, try_sets([{name: size} for size in sizes]), strict=True))
            failing = max((size for size, mistake in mistakes.items() if mistake), default=0)
            least[name] = min((size for size in sizes if size > failing), default=base[name])
            if not failing or mistakes[failing] == "it keeps no constraint":
                continue
            equal = [other for other in free if other != name and base[other] == least[name] and failing > 1]
            runs = zip(equal, try_sets([{name: failing, other: failing} for other in equal]), strict=True)
            bound = next((other for other, mistake in runs if not mistake), str(least[name]))
            constraints.append(f"{name} >= {bound}")
            notes.append(f"{name} >= {bound}: at {name} = {failing} the reference fails: {mistakes[failing]}")
        bounded = (*problem.constraints, *constraints)
        tiny = follow_constraints(bounded, {**problem.sizes, **least})
        if tiny is None or not satisfies_all(bounded, tiny) or any(try_sets([tiny])):
            notes.append("the smallest sizes of all dims do not run together: a constraint between dims may be missing")
            tiny = None
    except TrialError as error:
        return file, [f"the smallest sizes were not found out: {error}"]
    chosen = {"tiny": tiny} if tiny is not None and tiny != problem.sizes else {}
    sets = [
        {name: own for name, own in each.items() if satisfies_all(bounded, {**problem.sizes, **own})}
        for each in ({**problem.shapes, **chosen}, problem.bench)
    ]
    return replace(file, problem=replace(problem, constraints=bounded, shapes=sets[0], bench=sets[1])), notes
