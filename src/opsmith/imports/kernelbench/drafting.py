"""What is known of a module, as a problem file: dims and constraints, inputs and weights with their data, the module's
code as setup, and a reference that calls it. Nothing is executed here."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from opsmith.imports.kernelbench.axes import AxisForm, Sizes
from opsmith.imports.kernelbench.examination import Examination, StateFacts, TensorFacts
from opsmith.imports.kernelbench.sizes import AxisPlan
from opsmith.imports.kernelbench.source import MAKE_ARGUMENTS, MAKE_INPUTS, MODEL, ModuleSource
from opsmith.problems.constraints import follow_constraints
from opsmith.problems.dims import Dim, parse_dim
from opsmith.problems.dtypes import NARROW_FLOATS
from opsmith.problems.files.entries import is_name
from opsmith.problems.files.reading import ProblemFile
from opsmith.problems.problem import ArrayType, CaseSpec, InputTensor, OutputTensors, Problem, Provenance

UNIFORM = "uniform(0, 1)"
MOST_ARGUMENTS = 128  # weights that are inputs of their own; more lie in one
SPREAD = 0.1  # around a weight that the module initialises the same for every seed
_NUMPY_RANDOM = re.compile(r"\b(?:np|numpy)\.random\b")
_SEEDING = '    __import__("numpy").random.seed(int(torch.randint(2**31, ())))  # as torch is\n'
_MADE = "make_inputs()"  # data that the module's own code makes
_PACKING_HEAD = (
    "# all weights lie in one array: key, offset in numbers, shape, spread of the drawn ones around the module's\n"
)
_PACKING = """
def pack_weights():
    model = make_model()
    own = {**dict(model.named_buffers()), **dict(model.named_parameters())}
    return torch.cat([
        (own[key] + spread * torch.randn_like(own[key]) if spread else own[key]).reshape(-1)
        for key, _, _, spread in PACKED
    ])


def unpack_weights(weights):
    sizes = [torch.Size(shape).numel() for _, _, shape, _ in PACKED]
    parts = weights.split(sizes)
    return {key: part.view(shape) for (key, _, shape, _), part in zip(PACKED, parts)}
"""
FUNCTIONAL, LOADED = "functional", "loaded"  # how the reference gives its weights to the module

Keys = tuple[int | str, ...]


@dataclass(frozen=True)
class ChosenSets:
    """Sizes of a problem, by name."""

    base: Sizes
    shapes: Mapping[str, Sizes]
    bench: Mapping[str, Sizes]


@dataclass
class NameChooser:
    """Names of a problem, each once."""

    used: set[str] = field(default_factory=set)

    def choose(self, *wishes: str) -> str:
        """The first wish that is a free name, else the last with a number."""
        clean = [re.sub(r"\W", "_", wish) for wish in wishes]
        numbered = (f"{clean[-1]}_{number}" for number in range(2, 1000))
        name = next(wish for wish in (*clean, *numbered) if is_name(wish) and wish not in self.used)
        self.used.add(name)
        return name


class ProblemDraft:
    """One module's problem. `style`: FUNCTIONAL, or LOADED for modules that keep references to their weights."""

    def __init__(
        self,
        name: str,
        source: ModuleSource,
        plan: AxisPlan,
        facts: Examination,
        sets: ChosenSets,
        style: str,
        group: str = "",
        cases: tuple[CaseSpec, ...] = (),
    ) -> None:
        self._name, self._source, self._plan, self._facts, self._sets = name, source, plan, facts, sets
        self._style, self.base, self._group, self._cases = style, sets.base, group, cases
        self._weights = [state for state in facts.state if is_weight(state)]
        self._is_packed = len(self._weights) > MOST_ARGUMENTS
        if self._is_packed and len({state.dtype for state in self._weights}) > 1:
            raise ValueError("weights of several types, which no array holds together")
        self._names = NameChooser({name})
        self.dims = self._choose_dims()
        self._names.used |= {*self.dims}
        self._following: dict[str, str] = {}  # expression -> the dim that it computes
        self._constraints = [f"{dim} % {grain} == 0" for dim, grain in plan.grains.items() if dim in self.dims]
        self._make_problem()

    def _choose_dims(self) -> list[str]:
        """Those that occur in a tensor of the problem."""
        labels = {f"weight {state.name}" for state in self._weights}
        axes = self._plan.axes.items()
        forms = [form for (label, _), form in axes if not label.startswith("weight") or label in labels]
        used = {name for form in forms for name in re.findall(r"[^\W\d]\w*", form.text)}
        return [name for name in self._plan.dims if name in used]

    def _make_problem(self) -> None:
        inputs = self._make_inputs()
        weights = {} if self._is_packed else {self._name_weight(state): state for state in self._weights}
        self._packed = self._names.choose("weights", "packed_weights") if self._is_packed else ""
        scalars = self._name_constants()
        arguments = {
            **{tensor.name: keys for tensor, keys in inputs},
            **{name: keys for name, (keys, _) in scalars.items()},
        }
        outputs = self._make_outputs()
        tensors = (
            *(tensor for tensor, _ in inputs),
            *(self._make_weight(name, state) for name, state in weights.items()),
        )
        if self._is_packed:
            type_ = ArrayType(self._weights[0].dtype, (parse_dim(str(sum(map(self._count_numbers, self._weights)))),))
            tensors = (*tensors, InputTensor(self._packed, type_, None, expression="pack_weights()"))
        sizes = self._complete(self._sets.base)
        dtypes = {tensor.type.dtype for tensor in tensors} | {output.types[0].dtype for output in outputs}
        problem = Problem(
            tensors,
            (),
            outputs,
            global_code=self._write_setup(any(tensor.expression.startswith(_MADE) for tensor, _ in inputs)),
            sizes=sizes,
            shapes={name: self._complete(chosen) for name, chosen in self._sets.shapes.items()},
            reference=self._write_reference(arguments, weights),
            scalars={name: value for name, (_, value) in scalars.items()},
            accumulation="fp32" if dtypes & NARROW_FLOATS else "",
            bench={name: self._complete(chosen) for name, chosen in self._sets.bench.items()},
            constraints=tuple(self._constraints),
            cases=self._cases,
        )
        self.file = ProblemFile(self._name, self._group or self._name, problem)
        self.provenance = self._describe_origin(arguments, weights)

    # -- sizes

    def _complete(self, sizes: Sizes) -> dict[str, int]:
        """Of all dims, those that follow computed."""
        own = {name: sizes[name] for name in self.dims}
        own |= dict.fromkeys(self._following.values(), 1)
        completed = follow_constraints(self._constraints, own)
        assert completed is not None
        return completed

    def _make_type(self, label: str, dtype: str) -> ArrayType:
        forms = [form for (own, _), form in sorted(self._plan.axes.items(), key=lambda row: row[0]) if own == label]
        return ArrayType(dtype, tuple(self._make_dim(form, label) for form in forms))

    def _make_dim(self, form: AxisForm, label: str) -> Dim:
        if form.is_dim:
            return parse_dim(form.text)
        if form.text not in self._following:
            names = [name for name in self.dims if re.search(rf"\b{name}\b", form.text)]
            suffix = "out" if label.startswith("output") else "size"
            name = self._names.choose(f"{'_'.join(names)}_{suffix}")
            self._following[form.text] = name
            self._constraints.append(f"{name} == {form.text}")
        return parse_dim(self._following[form.text])

    # -- tensors

    def _make_inputs(self) -> list[tuple[InputTensor, Keys]]:
        """In the order of the call."""
        rows = []
        keys = [*(tensor.keys for tensor in self._facts.inputs), *(leaf.keys for leaf in self._facts.constants)]
        labels = {key: number for number, key in enumerate(sorted(keys, key=_order_keys))}  # as samples count them
        for tensor in self._facts.inputs:
            type_ = self._make_type(f"input {labels[tensor.keys]}", tensor.dtype)
            rows.append((self._make_input(tensor, type_), tensor.keys))
        return rows

    def _make_input(self, tensor: TensorFacts, type_: ArrayType) -> InputTensor:
        name, generator = self._name_argument(tensor.keys), tensor.generator
        if generator is not None and generator[0] == "normal" and type_.is_floating:
            return InputTensor(name, type_, "torch.randn")
        return InputTensor(name, type_, None, expression=self._write_data(tensor))

    def _write_data(self, tensor: TensorFacts) -> str:
        if tensor.generator is not None and tensor.generator[0] == "uniform":
            return UNIFORM
        if (bounds := find_bounds(tensor)) is not None:
            return f"randint({bounds[0]}, {bounds[1]})"
        return f"{_MADE}{write_keys(tensor.keys)}"

    def _name_argument(self, keys: Keys) -> str:
        names = self._source.forward_names
        number = keys[0]
        own = names[number] if isinstance(number, int) and number < len(names) else f"argument_{number}"
        suffix = "".join(f"_{key}" for key in keys[1:])
        return self._names.choose(f"{own}{suffix}", f"{own}{suffix}_value")

    def _name_constants(self) -> dict[str, tuple[Keys, int | float]]:
        """The numbers among the arguments; what else is there is written into the reference."""
        return {
            self._name_argument(leaf.keys): (leaf.keys, leaf.value)
            for leaf in self._facts.constants
            if type(leaf.value) in (int, float) and abs(leaf.value) < 2**53
        }

    def _name_weight(self, state: StateFacts) -> str:
        last = state.name.rpartition(".")[2]
        is_alone = sum(weight.name.rpartition(".")[2] == last for weight in self._weights) == 1
        return self._names.choose(*([last] if is_alone else []), state.name)

    def _make_weight(self, name: str, state: StateFacts) -> InputTensor:
        own = f"make_model().state_dict()[{state.name!r}]"
        if not state.is_parameter:
            own = f"make_model().get_buffer({state.name!r})"
        data = f"{own} + {SPREAD} * torch.randn_like({own})" if state.is_constant else own
        return InputTensor(name, self._make_type(f"weight {state.name}", state.dtype), None, expression=data)

    def _find_shape(self, state: StateFacts) -> tuple[int, ...]:
        return self._make_type(f"weight {state.name}", state.dtype).shape_at({})

    def _count_numbers(self, state: StateFacts) -> int:
        return math.prod(self._find_shape(state))

    def _write_packing(self) -> str:
        """The table of what lies where in the one array of all weights, and the code that packs and unpacks it."""
        rows, offset = [], 0
        for state in self._weights:
            spread = SPREAD if state.is_constant else 0
            rows.append(f"    ({state.name!r}, {offset}, {self._find_shape(state)}, {spread}),\n")
            offset += self._count_numbers(state)
        return f"{_PACKING_HEAD}PACKED = [\n{''.join(rows)}]\n{_PACKING}"

    def _make_outputs(self) -> tuple[OutputTensors, ...]:
        single = len(self._facts.outputs) == 1
        outputs = []
        for number, output in enumerate(self._facts.outputs):
            name = self._names.choose("y" if single else f"y_{number}", "result" if single else f"result_{number}")
            outputs.append(OutputTensors(name, (self._make_type(f"output {number}", output.dtype),)))
        return tuple(outputs)

    # -- code

    def _write_setup(self, needs_inputs: bool) -> str:
        dims = {name: name for name in self.dims}
        dims |= {name: dim for name, dim in self._plan.ties.items() if dim in self.dims}
        fixed = {name: size for name, size in self._sets.base.items() if name not in dims}
        text = self._source.write_setup(dims, fixed, () if needs_inputs else (MAKE_INPUTS,))
        arguments = f"*{MAKE_ARGUMENTS}()" if MAKE_ARGUMENTS in text else ""
        seeding = _SEEDING if _NUMPY_RANDOM.search(text) else ""
        pieces = [
            "import functools\n",
            text,
            f"@functools.cache\ndef make_model():\n{seeding}    return {MODEL}({arguments})\n",
        ]
        if self._is_packed:
            pieces.append(self._write_packing())
        if needs_inputs:
            pieces.append(f"@functools.cache\ndef make_inputs():\n{seeding}    return {MAKE_INPUTS}()\n")
        return "\n".join(pieces)

    def _write_reference(self, arguments: Mapping[str, Keys], weights: Mapping[str, StateFacts]) -> str:
        constants = {leaf.keys: repr(leaf.value) for leaf in self._facts.constants}
        scalars = [name for name, keys in arguments.items() if keys in constants]
        packed = [self._packed] if self._is_packed else []
        names = [*(name for name in arguments if name not in scalars), *weights, *packed, *scalars]
        texts = {
            **constants,
            **{keys: name for name, keys in arguments.items()},
        }
        call = ", ".join(_write_nested(texts, (number,)) for number in range(_count_children(texts, ())))
        rows = [f"def {self._name}({', '.join(names)}):"]
        state = "{" + ", ".join(f"{state.name!r}: {name}" for name, state in weights.items()) + "}"
        if self._is_packed:
            state = f"unpack_weights({self._packed})"
        if not weights and not self._is_packed:
            rows.append(f"    outputs = make_model()({call})")
        elif self._style == FUNCTIONAL:
            comma = "," if call and not call.endswith(",") else ""
            rows.append(f"    outputs = torch.func.functional_call(make_model(), {state}, ({call}{comma}))")
        else:
            rows += ["    model = make_model()", f"    model.load_state_dict({state}, strict=False)"]
            rows.append(f"    outputs = model({call})")
        values = ", ".join(f"outputs{write_keys(output.keys)}" for output in self._facts.outputs)
        return "\n".join([*rows, f"    return {values}"]) + "\n"

    def _describe_origin(self, arguments: Mapping[str, Keys], weights: Mapping[str, StateFacts]) -> Provenance:
        """Without what only the file's reader knows: its name, hash, licence and text."""
        ordered = sorted(arguments, key=lambda name: _order_keys(arguments[name]))
        own = {constant.name: constant.value for constant in self._source.constants}
        sizes = {name: own[name] for name in own if name in self.dims or own[name] != self._sets.base[name]}
        keys = {name: state.name for name, state in weights.items()}
        keys |= {self._packed: " ".join(state.name for state in self._weights)} if self._is_packed else {}
        return Provenance("kernelbench", "", "", arguments=tuple(ordered), weights=keys, sizes=sizes)


def write_signed_cases(problem: Problem) -> tuple[CaseSpec, ...]:
    """Inputs of both signs, for a module that does nothing to those from 0 to 1, which it draws."""
    names = [tensor.name for tensor in problem.inputs if tensor.expression == UNIFORM]
    if not names:
        return ()
    moves = "".join(f"input_data[{name!r}].sub_(0.5).mul_(8)\n" for name in names)
    text = f"# numbers of both signs: what is drawn is positive\n{moves}(input_data[{names[0]!r}] < 0).any()\n"
    return (CaseSpec(text),)


def is_weight(state: StateFacts) -> bool:
    """Whether a program is given it: it matters, and is not what the code computes the same every time."""
    return state.matters and (state.is_parameter or not state.is_constant)


def find_bounds(tensor: TensorFacts) -> tuple[int, int] | None:
    """Those of a whole number drawn by torch.randint, as far as they are numbers."""
    if tensor.generator is None or tensor.generator[0] != "randint":
        return None
    bounds = [bound for bound in tensor.generator[1] if type(bound) is int]
    return (0, bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1]) if len(bounds) == 2 else None


def write_keys(keys: Keys) -> str:
    return "".join(f"[{key!r}]" for key in keys)


def _order_keys(keys: Keys) -> tuple[tuple[bool, str | int], ...]:
    return tuple((isinstance(key, str), key) for key in keys)


def _count_children(texts: Collection[Keys], head: Keys) -> int:
    numbers = [keys[len(head)] for keys in texts if keys[: len(head)] == head and len(keys) > len(head)]
    return 1 + max((number for number in numbers if isinstance(number, int)), default=-1)


def _write_nested(texts: Mapping[Keys, str], head: Keys) -> str:
    """An argument, or the tuple of its parts."""
    if head in texts:
        return texts[head]
    pieces = [_write_nested(texts, (*head, number)) for number in range(_count_children(texts, head))]
    return f"({', '.join(pieces)},)"


def check_arguments(keys: Sequence[Keys]) -> bool:
    """Whether all lead through lists and tuples alone."""
    return all(isinstance(key, int) for row in keys for key in row)
