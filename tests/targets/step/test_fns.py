"""A batched function equals its body applied to each element, whatever way it runs; mistakes of its author are named."""

import pytest
import torch
from authors import batched, elements, function
from hypothesis import given, settings
from hypothesis import strategies as st

from opsmith.problems.precision import default_dtype, default_of
from opsmith.targets import TaskFault
from opsmith.targets.step.execution.fns import Mode
from opsmith.targets.step.execution.vmap import _map_by_torch
from opsmith.targets.step.execution.vmap import map_batch as vmapped

GLOBAL = "gelu = torch.nn.GELU()\nact = torch.nn.functional.silu\nsoftmax = torch.nn.Softmax(dim=-1)\nhalf = 0.5"
D, DK, KD = "Buffer(fp32, [D])", "Buffer(fp32, [D, K])", "Buffer(fp32, [K, D])"
ELEMENTWISE, VMAP, LOOP = Mode.ELEMENTWISE, Mode.VMAP, Mode.LOOP

BODIES = {  # name: (input, output, body, init, mode)
    "scalar": ("fp32", "fp32", "return [input[0] * input[0] + half]", None, ELEMENTWISE),
    "scalar meets buffer": (["fp32", D], D, "return [input[0] * input[1]]", None, ELEMENTWISE),
    "three ranks": (["fp32", D, DK], DK, "a, b, c = input\nreturn [a * b + torch.exp(-c)]", None, ELEMENTWISE),
    "size": (D, D, "return [input[0] / D_value]", None, ELEMENTWISE),
    "running maximum": (
        ["fp32", D],
        ["fp32", D],
        "m = torch.maximum(state[0], input[0])\nreturn [m, state[1] * torch.exp(state[0] - m) + input[1]]",
        (float("-inf"), 0.0),
        ELEMENTWISE,
    ),
    "module": (D, D, "x = gelu(input[0])\nreturn [act(x).clamp(min=0.1)]", None, ELEMENTWISE),
    "where": (D, D, "return [torch.where(input[0] > 0, input[0], 0.0)]", None, ELEMENTWISE),
    "parameter": (D, D, "return [input[0] * input_data['b'] + input_data['b']]", None, ELEMENTWISE),
    "parameter only": ("fp32", D, "return [input_data['b']]", None, ELEMENTWISE),
    "first axis": (DK, D, "x = input[0]\nreturn [x[0] - x[-1]]", None, ELEMENTWISE),
    "halves": (D, D, "h = input[0].shape[0] // 2\na, b = input[0][:h], input[0][h:]\nreturn [torch.cat([b, -a])]", None,
               ELEMENTWISE),
    "two-hot": ("fp32", "Multihot(fp32, 2)", "a = (input[0] > 0).to(input[0].dtype)\nreturn [torch.stack([a, 1 - a])]",
                None, ELEMENTWISE),
    "number": (D, ["fp32", "int64"], "return [1.5, 3]", None, ELEMENTWISE),
    "identity": (D, D, "return [input[0]]", None, ELEMENTWISE),
    "bools": (["bool", "bool"], "bool", "return [(input[0] & ~input[1]) | (input[0] == input[1])]", None, ELEMENTWISE),
    "integers": (["int32", "int32"], "int32", "return [input[0] * 2 + input[1]]", (0,), ELEMENTWISE),
    "half precision": (["fp16", "fp32"], "fp32", "return [input[0] * input[1]]", None, VMAP),
    "matmul": (D, "Buffer(fp32, [K])", "return [softmax(input[0] @ input_data['W'])]", None, VMAP),
    "mean": (D, D, "return [input[0].mean().expand(D_value)]", None, VMAP),
    "last axis": (DK, "Buffer(fp32, [K])", "return [input[0][..., 0]]", None, VMAP),
    "outer": (["Buffer(fp32, [K])", D], DK, "return [torch.outer(input[0], input[1])]", None, VMAP),
    "transpose": (DK, KD, "return [input[0].transpose(0, 1)]", None, VMAP),
    "top 1": (D, "Multihot(fp32, D)", "i = input[0].argsort(descending=True).argsort()\nreturn [(i < 1).float()]", None,
              VMAP),
    "positions": (["fp32", D], D, "t = torch.arange(D_value) / 2.0\nreturn [torch.cos(input[0] * t) * input[1]]", None,
                  VMAP),
    "max over the element": (D, "fp32", "return [input[0].max()]", None, VMAP),
    "branch": ("fp32", "fp32", "if input[0] > 0:\n  return [input[0]]\nreturn [-2 * input[0]]", None, LOOP),
    "python number of data": (D, "fp32", "return [float(input[0].sum())]", None, LOOP),
}  # fmt: skip


def same(given, wanted):
    """Equal up to the rounding of another order of evaluation, and equal in dtype and shape."""
    for x, y in zip(given, wanted, strict=True):
        bound = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 1e-2}.get(y.dtype, 0)
        torch.testing.assert_close(x, y, rtol=bound, atol=bound, equal_nan=True)


def loop(fn, state, input, batch, wide):
    """The results of the per-element loop under the default dtype of the run."""
    with default_dtype(default_of(wide)):
        return fn._run_each(state, input, (batch,))


def made(name, wide=False):
    given, result, body, init, mode = BODIES[name]
    return batched(function(given, result, body, init), wide, GLOBAL), init is not None, mode


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_each_body_runs_in_the_fastest_mode_that_is_right(name, wide):
    fn, stateful, mode = made(name, wide)
    if wide and name == "half precision":
        mode = ELEMENTWISE  # all floats are float64 then
    assert fn.mode is mode
    state, input = elements(fn, 5, 3, stateful)
    same(fn(state, input, (5,)), loop(fn, state, input, 5, wide))


@given(st.sampled_from(sorted(BODIES)), st.integers(1, 9), st.integers(0, 1000), st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_batch_equals_the_loop(name, batch, seed, wide):
    fn, stateful, _ = made(name, wide)
    state, input = elements(fn, batch, seed, stateful)
    results = fn(state, input, (batch,))
    same(results, loop(fn, state, input, batch, wide))
    assert [(tuple(r.shape), r.dtype) for r in results] == [((batch, *s.shape), s.dtype) for s in fn.outputs]


@pytest.mark.parametrize("name", BODIES)
def test_a_batch_may_have_several_axes_and_repeated_entries(name):
    fn, stateful, _ = made(name)
    state, input = elements(fn, 12, 2, stateful)
    wanted = fn(state, input, (12,))
    lift = lambda tensors: [t.reshape(3, 1, 4, *t.shape[1:]).expand(3, 2, 4, *t.shape[1:]) for t in tensors]  # noqa: E731
    results = fn(None if state is None else lift(state), lift(input), (3, 2, 4))
    same([result[:, 1].flatten(0, 1) for result in results], wanted)
    same(results, lift(wanted))


@pytest.mark.parametrize("name", BODIES)
def test_an_empty_batch_has_the_declared_layout(name):
    fn, stateful, _ = made(name)
    state, input = elements(fn, 0, 0, stateful)
    assert [(tuple(r.shape), r.dtype) for r in fn(state, input, (0,))] == [((0, *s.shape), s.dtype) for s in fn.outputs]


@pytest.mark.parametrize("name", ["matmul", "number", "running maximum", "parameter only"])
def test_the_two_forms_of_vmap_agree(name):
    fn, stateful, _ = made(name)
    state, input = elements(fn, 4, 1, stateful)
    own, theirs = vmapped(fn._apply, state, input, 4), _map_by_torch(fn._apply, state, input)
    assert all(torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y for x, y in zip(own, theirs, strict=True))


def test_the_start_state_is_broadcast_in_the_declared_dtype():
    fn = batched(function("fp32", [D, "bool"], "return [state[0] + input[0], state[1]]", (float("-inf"), True)))
    first, second = fn.init_state((3,))
    assert first.shape == (3, 16)
    assert bool((first == float("-inf")).all())
    assert second.dtype is torch.bool
    assert batched(function(D, D, "return [state[0]]", (0,)), wide=True).init_state((2,))[0].dtype is torch.float64


FAULTS = [  # input, output, body, words of the finding
    ("fp32", D, "return [input[0]]", "given a tensor of shape () and float32; expected shape (16,) and float32"),
    (D, "fp32", "return [input[0]]", "given a tensor of shape (16,)"),
    ("fp32", "fp32", "return [input[0].double()]", "given a tensor of shape () and float64"),
    ("fp32", "fp32", "return [input[0] > 0]", "bool"),
    ("fp32", "fp32", "return input[0]", "given Tensor; expected a list of 1 values"),
    ("fp32", "fp32", "return [input[0], input[0]]", "given 2 values; expected a list of 1 values"),
    ("fp32", ["fp32", "fp32"], "return [input[0]]", "given 1 values; expected a list of 2 values"),
    ("fp32", "int32", "return [1.0]", "given float 1.0"),
    ("fp32", "fp32", "return [True]", "given bool True"),
    (D, D, "return [1.0]", "given float 1.0"),
    ("fp32", "fp32", "return [None]", "given NoneType"),
    ("fp32", "fp32", "return None", "given NoneType"),
    ("fp32", "fp32", "x = input[0]\nx += 1\nreturn [x]", "input[0] written in place"),
    (D, D, "y = input[0] @ input_data['W']\ninput[0][0] = 0\nreturn [input[0]]", "input[0] written in place"),
    (D, D, "input_data['b'].add_(1)\nreturn [input[0]]", "a tensor of input_data written in place"),
    (D, D, "return [torch.rand(16)]", "two results for the same elements"),
    ("fp32", "fp32", "global x\nx = 1\nreturn [input[0]]", "no global names"),
    ("fp32", "fp32", "return [input[0]", "'[' was never closed"),
    ("fp32", "fp32", "x = input[0]", "given no return"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "result", "body", "words"), FAULTS)
def test_a_function_that_breaks_its_declaration_is_its_authors_fault(given, result, body, words):
    with pytest.raises(TaskFault) as caught:
        batched(function(given, result, body))
    assert caught.value.diagnostic.kind == "FN"
    assert words in str(caught.value)
    assert " f" in str(caught.value)


def test_a_body_that_fails_on_data_is_named_with_its_line():
    fn = batched(function("fp32", "fp32", "x = input[0]\nif x > 5:\n  raise ValueError('too large')\nreturn [x]"))
    assert fn(None, [torch.ones(2)], (2,))[0].tolist() == [1, 1]
    with pytest.raises(TaskFault, match="f, its body, line 3: given ValueError: too large"):
        fn(None, [torch.tensor([1.0, 9.0])], (2,))


def test_writing_an_operand_is_found_even_when_only_some_data_does_it():
    body = "x = input[0]\nif x > 5:\n  x.mul_(0)\nreturn [x + 0]"
    with pytest.raises(TaskFault, match="written in place"):
        batched(function("fp32", "fp32", body))(None, [torch.tensor([1.0, 9.0])], (2,))


def test_input_data_takes_no_assignment():
    with pytest.raises(TaskFault, match="does not support item assignment"):
        batched(function(D, D, "input_data['b'] = input[0]\nreturn [input[0]]"))(None, [torch.ones(1, 16)], (1,))


def test_a_mode_is_decided_once_per_task():
    plans = {}
    fn = function(D, D, "return [input[0] - input[0].mean()]")
    batched(fn, plans=plans)
    plan = plans["f", False]
    batched(fn, plans=plans)
    assert plans["f", False] is plan


def test_in_a_wide_run_a_body_may_narrow_and_the_default_dtype_is_float64():
    narrow = batched(function("fp32", "fp32", "return [(input[0] > 0).float()]"), wide=True)
    assert narrow(None, [torch.ones(2, dtype=torch.float64)], (2,))[0].dtype is torch.float64
    default = batched(function("int64", "fp32", "return [input[0] / 3]"), wide=True)
    assert default(None, [torch.ones(1, dtype=torch.int64)], (1,))[0].item() == 1 / 3
    assert torch.get_default_dtype() is torch.float32


def test_no_gradient_leaves_a_function():
    fn = batched(
        function(D, "Buffer(fp32, [1])", "return [layer(input[0])]"), global_code="layer = torch.nn.Linear(D_value, 1)"
    )
    assert not fn(None, [torch.ones(2, 16)], (2,))[0].requires_grad


REDUCTIONS = {  # body: (start values, whether torch has it)
    "return [state[0] + input[0]]": ((0.5,), True),
    "return [input[0] + state[0]]": ((0.0,), True),
    "return [torch.add(state[0], input[0])]": ((0.0,), True),
    "return [torch.maximum(state[0], input[0])]": ((float("-inf"),), True),
    "return [torch.min(input[0], state[0])]": ((0.25,), True),
    "return [state[0] + input[0] * 2]": ((0.0,), False),
    "return [state[0] - input[0]]": ((0.0,), False),
    "return [state[0] + state[0]]": ((1.0,), False),
    "return [input[0] + input[0]]": ((1.0,), False),
    "torch = None\nreturn [state[0] + input[0]]": ((0.0,), False),
}


@pytest.mark.parametrize("special", [None, float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(("body", "init", "known"), [(body, *rest) for body, rest in REDUCTIONS.items()])
def test_a_reduction_equals_the_fn_entry_by_entry(body, init, known, special):
    fn = batched(function(D, D, body, init))
    assert (fn.reduction is not None) == known
    if fn.reduction is None:
        return
    data = torch.randn(3, 7, 16, generator=torch.Generator().manual_seed(1))
    if special is not None:
        data[0, 2, 3] = data[1, 0, 0] = special
    state, states = fn.init_state((3,)), []
    for entry in data.unbind(1):
        state = fn(state, [entry], (3,))
        states.append(state[0])
    same(fn.reduction.reduce_all([data], 1), state)
    same(fn.reduction.reduce_running([data], 1), [torch.stack(states, 1)])


@pytest.mark.parametrize(
    ("given", "made_type", "body", "init"),
    [
        ("int32", "int32", "return [state[0] + input[0]]", (0,)),
        ("fp32", D, "return [state[0] + input[0]]", (0,)),
        (["fp32", "fp32"], ["fp32", "fp32"], "return [state[0] + input[0], state[0] + input[1]]", (0, 0)),
    ],
)
def test_what_is_no_plain_reduction_runs_entry_by_entry(given, made_type, body, init):
    assert batched(function(given, made_type, body, init)).reduction is None


def test_fields_may_be_reduced_in_different_ways():
    body = "return [torch.minimum(state[0], input[1]), input[0] + state[1]]"
    fn = batched(function(["fp32", "fp32"], ["fp32", "fp32"], body, (9.0, 1.0)))
    first, second = fn.reduction.reduce_all([torch.tensor([1.0, 2.0]), torch.tensor([8.0, 7.0])], 0)
    assert (first.item(), second.item()) == (7.0, 4.0)
