"""The arbiter: STeP by the letter, one element at a time, with no tensor operation on more than one element.

A stream is a function from an index (outermost first) to its list of field tensors, kept as a dict with its shape. It is
written from the reference's data rules alone and shares nothing with the simulator but the graph.
"""

from __future__ import annotations

from itertools import product

import torch

from opsmith.targets.step.language.types import element_shape, fields_of

Index = tuple[int, ...]
Elements = tuple[tuple[int, ...], dict[Index, list[torch.Tensor]]]


def interpret(graph, bindings):
    """The elements of every returned stream as tensors, one per field."""
    streams: dict[int, Elements] = {}
    for number, name in enumerate(graph.inputs):
        rank = len(graph.types[number].dims)
        tensor = bindings.input_data[name]
        shape = tuple(tensor.shape[:rank])
        streams[number] = (shape, {i: [tensor[i]] for i in indices(shape)})
    state = {"sizes": dict(bindings.sizes), "routes": {}}
    for node in graph.nodes:
        results = _RULES[node.op](graph, node, [streams[s] for s in node.operands], bindings, state)
        streams.update(zip(node.results, results, strict=True))
    return [stacked(graph.types[s], streams[s], state["sizes"], bindings) for s in graph.outputs]


def indices(shape):
    return list(product(*(range(size) for size in shape)))


def stacked(kind, elements, sizes, bindings):
    shape, values = elements
    tensors = []
    for k, part in enumerate(fields_of(kind.dtype)):
        dtype = next(iter(values.values()))[k].dtype if values else torch.get_default_dtype()
        tensor = torch.empty((*shape, *element_shape(part, sizes)), dtype=dtype)
        for i in indices(shape):
            tensor[i] = values[i][k]
        tensors.append(tensor)
    return tensors


def call(bindings, fn, state, fields):
    """One application of a fn to one element, through a batch of one."""
    lift = lambda tensors: [tensor.unsqueeze(0) for tensor in tensors]  # noqa: E731
    made = bindings.fns[fn.func_name](None if state is None else lift(state), lift(fields), (1,))
    return [tensor[0] for tensor in made]


def start(bindings, fn):
    return [tensor[0] for tensor in bindings.fns[fn.func_name].init_state((1,))]


def map_(graph, node, operands, bindings, state):
    shape = operands[0][0]
    return [(shape, {i: call(bindings, node.fn, None, [f for _, v in operands for f in v[i]]) for i in indices(shape)})]


def zip_(graph, node, operands, bindings, state):
    (shape, left), (_, right) = operands
    return [(shape, {i: left[i] + right[i] for i in indices(shape)})]


def fold(emit_all):
    def rule(graph, node, operands, bindings, state):
        shape, values = operands[0]
        kept = len(shape) - node.ints[0]
        result = {}
        for outer in indices(shape[:kept]):
            current = start(bindings, node.fn)
            for inner in indices(shape[kept:]):
                current = call(bindings, node.fn, current, values[outer + inner])
                if emit_all:
                    result[outer + inner] = current
            if not emit_all:
                result[outer] = current
        return [(shape if emit_all else shape[:kept], result)]

    return rule


def reindexed(graph, node, operands, bindings, state):
    """Promote, Flatten, Reshape: the same elements in the same row-major order under another shape."""
    kind = graph.types[node.results[0]]
    shape = tuple(dim.value(state["sizes"]) for dim in reversed(kind.dims))
    before, values = operands[0]
    return [(shape, dict(zip(indices(shape), (values[i] for i in indices(before)), strict=True)))]


def repeat(graph, node, operands, bindings, state):
    shape, values = operands[0]
    count = graph.types[node.results[0]].dims[0].value(state["sizes"])
    return [((*shape, count), {(*i, k): values[i] for i in indices(shape) for k in range(count)})]


def bufferize(graph, node, operands, bindings, state):
    shape, values = operands[0]
    kept = len(shape) - node.ints[0]
    result = {}
    for outer in indices(shape[:kept]):
        inner = [values[outer + i] for i in indices(shape[kept:])]
        result[outer] = [
            torch.stack([fields[k] for fields in inner]).reshape(*shape[kept:], *inner[0][k].shape)
            for k in range(len(inner[0]))
        ]
    return [(shape[:kept], result)]


def streamify(graph, node, operands, bindings, state):
    shape, values = operands[0]
    extra = len(graph.types[node.results[0]].dims) - len(shape)
    sample = next(iter(values.values()))[0]
    inner = tuple(sample.shape[:extra])
    return [((*shape, *inner), {o + i: [f[i] for f in values[o]] for o in indices(shape) for i in indices(inner)})]


def partition(graph, node, operands, bindings, state):
    (shape, values), (outer, index) = operands
    inner = shape[len(outer) :]
    results, rows = [], []
    for expert in range(node.ints[0]):
        chosen = [i for i in indices(outer) if index[i][0][expert] == 1]
        rows.append(chosen)
        state["sizes"][f"?{node.partition}.{expert}"] = len(chosen)
        results.append(
            ((len(chosen), *inner), {(n, *c): values[i + c] for n, i in enumerate(chosen) for c in indices(inner)})
        )
    state["routes"][node.partition] = rows
    return results


def merge(graph, node, operands, bindings, state):
    *items, (outer, index) = operands
    inner = items[0][0][1:]
    cursors, result = [0] * len(items), {}
    for position in indices(outer):
        selected = [e for e in range(len(items)) if index[position][0][e] == 1]
        for c in indices(inner):
            current = start(bindings, node.fn)
            for e in selected:
                current = call(bindings, node.fn, current, items[e][1][(cursors[e], *c)])
            result[position + c] = current
        for e in selected:
            cursors[e] += 1
    return [((*outer, *inner), result)]


_RULES = {
    "Map": map_,
    "Zip": zip_,
    "Accum": fold(emit_all=False),
    "Scan": fold(emit_all=True),
    "Promote": reindexed,
    "Flatten": reindexed,
    "Reshape": reindexed,
    "Repeat": repeat,
    "RepeatRef": repeat,
    "Bufferize": bufferize,
    "Streamify": streamify,
    "Copy": lambda graph, node, operands, bindings, state: [operands[0], operands[0]],
    "Identity": lambda graph, node, operands, bindings, state: [operands[0]],
    "Partition": partition,
    "Merge": merge,
}
