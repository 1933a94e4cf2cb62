"""A machine of tiles whose instructions have the names that a JSON file gives them: `machine.py OPS SOURCE -i.. -o..`.

One instruction a line, `NAME OPERANDS`, comments after a semicolon. A register that a fold wrote must be settled before
it is read. Standard library only: it runs as the simulator of a language file.
"""

import array
import json
import math
import sys
from pathlib import Path

UNARY = {
    "exp": math.exp,
    "logistic": lambda x: 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x)),
    "softplus": lambda x: max(x, 0.0) + math.log1p(math.exp(-abs(x))),
    "square": lambda x: x * x,
    "rsqrt": lambda x: x**-0.5,
    "reciprocal": lambda x: 1 / x,
}
FOLDS = {"sum": math.fsum, "max": max}
BINARY = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y}


def apply(kind, rows, others, numbers):  # noqa: PLR0911  (a line an instruction)
    """The rows of an instruction's result."""
    if kind in UNARY:
        return [[UNARY[kind](x) for x in row] for row in rows]
    if kind in FOLDS:
        return [[FOLDS[kind](row)] for row in rows]
    if kind in BINARY:
        return [[BINARY[kind](*pair) for pair in zip(*both)] for both in zip(rows, others)]  # noqa: B905
    if kind.endswith("_column"):
        return [[BINARY[kind[:3]](x, other[0]) for x in row] for row, other in zip(rows, others)]  # noqa: B905
    if kind.endswith("_row"):
        vector = [x for other in others for x in other]
        return [[BINARY[kind[:3]](x, y) for x, y in zip(row, vector)] for row in rows]  # noqa: B905
    if kind == "scan":
        return [[math.fsum(row[: at + 1]) for at in range(len(row))] for row in rows]
    if kind == "flip":
        return [row[::-1] for row in rows]
    if kind == "roll":
        steps = int(numbers[0])
        return [[row[(at - steps) % len(row)] for at in range(len(row))] for row in rows]
    return [[min(max(x, numbers[0]), numbers[1]) for x in row] for row in rows]  # clamp


def run(names, fault, program, inputs, outputs, width):
    registers, pending = {}, set()

    def read(name):
        if name in pending:
            raise SystemExit(f"error: {fault.format(register=name)}")
        return registers[name]

    for number, line in enumerate(Path(program).read_text().splitlines(), 1):
        word, _, rest = line.split(";")[0].strip().partition(" ")
        operands = [each.strip() for each in rest.split(",")]
        if not word:
            continue
        kind = names.get(word)
        if kind is None:
            raise SystemExit(f"error: line {number}: no instruction {word}")
        if kind == "load":
            values = array.array("f", Path(inputs[operands[1]]).read_bytes())
            registers[operands[0]] = [list(values[at : at + width]) for at in range(0, len(values), width)]
        elif kind == "store":
            values = array.array("f", [x for row in read(operands[1]) for x in row])
            Path(outputs[operands[0]]).write_bytes(values.tobytes())
        elif kind == "settle":
            pending.discard(operands[0])
        else:
            sources = [read(each) for each in operands[1:] if each in registers]
            numbers = [float(each) for each in operands[1:] if each not in registers]
            registers[operands[0]] = apply(kind, sources[0], sources[-1], numbers)
            (pending.add if kind in FOLDS else pending.discard)(operands[0])


def read_pairs(words, option):
    return dict(words[at + 1].split("=") for at in range(len(words)) if words[at] == option)


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        chip = json.load(file)
    pairs = [read_pairs(sys.argv, option) for option in ("-i", "-o", "-D")]
    run(chip["operations"], chip["fault"], sys.argv[2], pairs[0], pairs[1], int(pairs[2]["N"]))
