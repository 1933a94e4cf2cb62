"""A program with every access of its arrays checked: text out of text, with calls of ours where the indices stand.

Each index of an array becomes a call that says which access it is, the index on every axis and the extents, and that
gives the last index back. Loops over threads, vectors and unrolled ones become plain loops, so that iterations follow
one another; the calls know which iteration of a parallel loop they are in. So two iterations of which one writes what
the other reads or writes are seen in one run, whatever the order, and without threads. What the calls do is `CHECKS`,
in C: in a verdict a race ends the process, where a failure is explained each finding is a line for `explain_report`.

A text that `check_source` lets pass indexes arrays one entry at a time, and by their own names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from opsmith.records import Diagnostic
from opsmith.targets.native.messages import show_line
from opsmith.targets.tvm.source import find_arrays, read_function

MOST_AXES = 16
_WHERE = "run with every access checked"
_START = "look at an index that may go below 0"
_RACE = "look for sums over the parallel axis and for arrays that iterations share: give each iteration its own"
_END = "end the loop at the last entry, or guard it: the last row, column or vector may not be full"
_EXPLAINED = "OPSMITH_EXPLAINED"  # a macro: findings are said, and the first one ends the program

CHECKS = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef struct {
  unsigned fresh;  /* when it was written to last: which life of the array */
  unsigned loop;  /* which run of a parallel loop the rest is of */
  int writer, reader, other;  /* iterations: the last writer, and two readers that differ */
  short written, read, also;  /* their places in the text */
} opsmith_cell;
static struct { opsmith_cell *cells; long size; unsigned life; } opsmith_array[4096];
static unsigned opsmith_loop = 1;
static int opsmith_iteration = -1;  /* -1: in no parallel loop */

static void opsmith_say(const char *kind, int array, int site, int other, long first, long second, int axes,
                        const long *index) {
#ifdef OPSMITH_EXPLAINED
  fprintf(stderr, "opsmith finding %s %d %d %d %ld %ld", kind, array, site, other, first, second);
  for (int axis = 0; axis < axes; axis++) fprintf(stderr, " %ld", index[axis]);
  fputs("\\n", stderr);
  _exit(9);
#else
  if (*kind == 'r') abort();
  (void)array; (void)site; (void)other; (void)first; (void)second; (void)axes; (void)index;
#endif
}
static opsmith_cell *opsmith_find(int array, long size, long place) {
  if (size > opsmith_array[array].size) {
    free(opsmith_array[array].cells);
    opsmith_array[array].cells = calloc((size_t)size, sizeof(opsmith_cell));
    opsmith_array[array].size = opsmith_array[array].cells ? size : 0;
  }
  return place < opsmith_array[array].size ? &opsmith_array[array].cells[place] : NULL;
}
static long opsmith_touch(int site, int array, int kind, int axes, const long *index, const long *extent) {
  long place = 0, size = 1;
  for (int axis = 0; axis < axes; axis++) {
    place = place * extent[axis] + index[axis];
    size *= extent[axis];
    if (index[axis] < 0 || index[axis] >= extent[axis]) {
      opsmith_say("bounds", array, site, axis, extent[axis], 0, axes, index);
      return index[axes - 1];
    }
  }
  opsmith_cell *cell = opsmith_find(array, size, place);
  if (!cell) return axes ? index[axes - 1] : 0;
  int writes = kind & 1, i = opsmith_iteration;
  if (writes && kind & 2) opsmith_say("input", array, site, 0, 0, 0, axes, index);
  if (!writes && !(kind & 2) && cell->fresh != opsmith_array[array].life)
    opsmith_say("unwritten", array, site, 0, 0, 0, axes, index);
  if (cell->loop != opsmith_loop || cell->fresh > opsmith_array[array].life) {
    cell->loop = opsmith_loop;
    cell->writer = cell->reader = cell->other = -1;
  }
  if (i >= 0 && cell->writer >= 0 && cell->writer != i)
    opsmith_say("race", array, site, cell->written, i, cell->writer, axes, index);
  if (i >= 0 && writes) {
    if (cell->reader >= 0 && cell->reader != i)
      opsmith_say("race", array, site, cell->read, i, cell->reader, axes, index);
    if (cell->other >= 0 && cell->other != i)
      opsmith_say("race", array, site, cell->also, i, cell->other, axes, index);
    cell->writer = i;
    cell->written = (short)site;
  } else if (i >= 0) {
    if (cell->reader >= 0 && cell->reader != i) { cell->other = i; cell->also = (short)site; }
    else { cell->reader = i; cell->read = (short)site; }
  }
  if (writes) cell->fresh = opsmith_array[array].life;
  return axes ? index[axes - 1] : 0;
}
OPSMITH_OWN int opsmith_fresh(int array, long size) {  /* an array begins to live: nothing is written yet */
  opsmith_cell *cells = opsmith_find(array, size, 0);
  if (cells) memset(cells, 0, (size_t)opsmith_array[array].size * sizeof *cells);
  opsmith_array[array].life++;
  return 0;
}
OPSMITH_OWN int opsmith_finish(int array, long size) {
  opsmith_cell *cells = opsmith_find(array, size, 0);
  for (long place = 0; cells && place < size; place++)
    if (cells[place].fresh != opsmith_array[array].life) opsmith_say("missing", array, 0, 0, place, 0, 0, NULL);
  return 0;
}
OPSMITH_OWN int opsmith_enter(int enters) {  /* a parallel loop, or what follows it */
  (void)enters;
  opsmith_loop++;
  opsmith_iteration = -1;
  return 0;
}
OPSMITH_OWN int opsmith_iterate(long iteration) {
  opsmith_iteration = (int)iteration;
  return 0;
}
"""


def write_checks(is_explained: bool) -> str:
    """The C of the calls."""
    rows = [f"#define {_EXPLAINED}" if is_explained else "", CHECKS]
    for axes in range(MOST_AXES + 1):
        numbers = "".join(f", long i{axis}, long e{axis}" for axis in range(axes))
        index, extent = (", ".join(f"{letter}{axis}" for axis in range(axes)) or "0" for letter in "ie")
        rows.append(f"OPSMITH_OWN long opsmith_touch{axes}(int site, int array, int kind{numbers}) {{")
        rows.append(f"  const long index[] = {{{index}}}, extent[] = {{{extent}}};")
        rows.append(f"  return opsmith_touch(site, array, kind, {axes}, index, extent);\n}}")
    return "\n".join(rows) + "\n"


@dataclass(frozen=True)
class ArrayAccess:
    """A place in the text where an array is indexed."""

    line: int
    array: str
    writes: bool

    @property
    def verb(self) -> str:
        return "writes" if self.writes else "reads"


@dataclass(frozen=True)
class Instrumented:
    """The text with calls, and what the numbers in them mean."""

    text: str
    accesses: Sequence[ArrayAccess]
    arrays: Mapping[str, Sequence[str]]  # `find_arrays`
    meanings: Mapping[str, str]  # input x, output y: of the function's own, by name


def instrument(source: str, meanings: Mapping[str, str]) -> Instrumented:
    """`source`: a right head, and a body that `check_source` lets pass; `meanings`: `list_arrays` of its problem."""
    function = read_function(source)
    calls = _CallInserter(find_arrays(function), meanings)
    head, body = function.body[: len(meanings)], function.body[len(meanings) :]
    outputs = [name for name, words in meanings.items() if words.startswith("output")]
    checked = [row for statement in body for row in calls.rewrite(statement)]
    fresh, finish = ([calls.call_with_size(call, name) for name in outputs] for call in ("fresh", "finish"))
    function.body = [*head, *fresh, *checked, *finish]
    text = ast.unparse(ast.fix_missing_locations(function)) + "\n"
    return Instrumented(text, calls.accesses, calls.arrays, meanings)


@dataclass
class _CallInserter(ast.NodeTransformer):
    arrays: Mapping[str, Sequence[str]]
    meanings: Mapping[str, str]
    accesses: list[ArrayAccess] = field(default_factory=list)
    before: list[ast.stmt] = field(default_factory=list)  # of the statement that is visited

    def rewrite(self, statement: ast.stmt) -> list[ast.stmt]:
        rows = self.visit(statement)
        return rows if isinstance(rows, list) else [rows]

    def call_with_size(self, call: str, name: str) -> ast.stmt:
        axes = [f'T.Cast("int64", {name}.shape[{axis}])' for axis in range(len(self.arrays[name]))]
        return _evaluate(f"opsmith_{call}", self._number(name), " * ".join(axes) or "T.int64(1)")

    def _number(self, name: str) -> str:
        return f"T.int32({list(self.arrays).index(name)})"

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        assert isinstance(node.value, ast.Name)
        name, writes = node.value.id, isinstance(node.ctx, ast.Store)
        indices = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        indices = [self.visit(index) for index in indices]
        kind = writes + 2 * self.meanings.get(name, "").startswith("input")
        numbers = [f"T.int32({len(self.accesses)})", self._number(name), f"T.int32({kind})"]
        for axis, index in enumerate(indices):
            numbers += [f'T.Cast("int64", {ast.unparse(index)})', f'T.Cast("int64", {name}.shape[{axis}])']
        call = f'T.call_extern("int64", "opsmith_touch{len(indices)}", {", ".join(numbers)})'
        self.accesses.append(ArrayAccess(node.lineno, name, writes))
        if indices:
            indices[-1] = _parse(call)
            node.slice = ast.Tuple(indices, ast.Load())
        elif writes:
            self.before.append(ast.Expr(_parse(f"T.evaluate({call})")))
        else:
            whole = ast.unparse(node)
            return _parse(f"T.if_then_else({call} == T.int64(0), {whole}, {whole})")
        return node

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        node.value, (target,) = self.visit(node.value), node.targets
        is_array = isinstance(target, ast.Name) and target.id in self.arrays
        node.targets = [self.visit(target)]
        after = [self.call_with_size("fresh", target.id)] if is_array and isinstance(target, ast.Name) else []
        before, self.before = self.before, []
        return [*before, node, *after]

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        value = deepcopy(node.target)
        value.ctx = ast.Load()
        return self.visit_Assign(ast.Assign([node.target], ast.BinOp(value, node.op, node.value), lineno=node.lineno))

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """Regions of a block are found anew: they do not know of the calls."""
        is_region = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in ("T.reads", "T.writes")
        return ast.Expr(_parse("T.evaluate(0)")) if is_region else ast.Expr(self.visit(node.value))

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        self.generic_visit(node)
        loop = node.iter.func if isinstance(node.iter, ast.Call) else None
        if not isinstance(loop, ast.Attribute) or loop.attr not in ("parallel", "vectorized", "unroll"):
            return [node]
        is_parallel, loop.attr = loop.attr == "parallel", "serial"
        if not is_parallel:
            return [node]
        node.body.insert(0, _evaluate("opsmith_iterate", f'T.Cast("int64", {ast.unparse(node.target)})'))
        return [_evaluate("opsmith_enter", "T.int32(1)"), node, _evaluate("opsmith_enter", "T.int32(0)")]


def _parse(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _evaluate(function: str, *arguments: str) -> ast.stmt:
    return ast.Expr(_parse(f'T.evaluate(T.call_extern("int32", "{function}", {", ".join(arguments)}))'))


# -- what the calls say

_FINDING = re.compile(r"^opsmith finding (\w+) (\d+) (\d+) (\d+) (-?\d+) (-?\d+)((?: -?\d+)*)$", re.MULTILINE)


def explain_report(program: Instrumented, source: str, messages: str) -> tuple[Diagnostic, ...]:
    """The finding of a run that ended with one."""
    said = _FINDING.search(messages)
    if said is None:
        return ()
    array, site, other, first, second = (int(number) for number in said.groups()[1:6])
    name = list(program.arrays)[array]
    access, place = program.accesses[site], f"{name}[{', '.join(said[7].split()) or '()'}]"
    words = program.meanings.get(name, name)
    if said[1] == "missing":
        given, remedy = (
            f"entry {first} of {words}, in the order of memory, is never written",
            "look at tails and guards",
        )
        return (Diagnostic("MEMORY", _WHERE, given, "outputs whose every entry is written", remedy),)
    given = f"{access.verb} {place}"
    if said[1] == "bounds":
        index = int(said[7].split()[other])
        expected = f"an index from 0 to {first - 1} on axis {other} of {words}: {program.arrays[name][other]} = {first}"
        kind, remedy = "RUN", _START if index < 0 else _END
    elif said[1] == "input":
        kind, expected, remedy = "RUN", "inputs that stay as they are", "write to outputs and to arrays of the program"
    elif said[1] == "unwritten":
        kind, given, expected = "MEMORY", f"{given}, which nothing has been written to yet", "values that are set"
        remedy = "set it before it is read: arrays, outputs too, hold junk at first"
    else:
        earlier = program.accesses[other]
        given += f" in iteration {first} of the parallel loop, and line {earlier.line} {earlier.verb} it in {second}"
        kind, expected, remedy = "RACE", "no iteration that writes what another one reads or writes", _RACE
    text = show_line(source.split("\n"), access.line)
    return (Diagnostic(kind, _WHERE, given, expected, remedy, access.line, None, text),)
