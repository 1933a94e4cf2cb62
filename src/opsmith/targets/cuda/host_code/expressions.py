"""Expressions of launch plans in C++, on `int64_t`: the functions that they call, and one expression.

They give what `gpu.expressions.evaluate` gives wherever that has a value; a divisor of 0 throws there.
"""

from __future__ import annotations

from collections.abc import Mapping

from opsmith.targets.gpu.expressions import Expression, parse_expression

FUNCTIONS = """
namespace opsmith {

inline int64_t check_divisor(int64_t b) {
  if (b == 0) throw std::invalid_argument("launch plan: given a divisor of 0; expected another");
  return b;
}

inline int64_t floor_divide(int64_t a, int64_t b) {
  const int64_t quotient = a / check_divisor(b);
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

inline int64_t floor_modulo(int64_t a, int64_t b) { return a - floor_divide(a, b) * b; }

inline int64_t ceil_divide(int64_t a, int64_t b) { return -floor_divide(-a, b); }

inline int64_t next_power(int64_t a) {
  int64_t power = 1;
  while (power < a) power *= 2;
  return power;
}

}  // namespace opsmith
""".strip("\n")

_BINARY = {"+": "({} + {})", "-": "({} - {})", "*": "({} * {})"}
_CALLS = {
    "//": "opsmith::floor_divide({}, {})",
    "%": "opsmith::floor_modulo({}, {})",
    "cdiv": "opsmith::ceil_divide({}, {})",
    "next_pow2": "opsmith::next_power({})",
}


def write_expression(text: str, names: Mapping[str, str]) -> str:
    """`text` with the names of C++ for those of the plan.

    >>> write_expression("cdiv(N, 256) - 1", {"N": "number_N"})
    '(opsmith::ceil_divide(number_N, int64_t{256}) - int64_t{1})'
    """
    return _write(parse_expression(text), names)


def _write(expression: Expression, names: Mapping[str, str]) -> str:
    if not expression.operands:
        return f"int64_t{{{expression.head}}}" if expression.head.isdigit() else names[expression.head]
    operands = [_write(operand, names) for operand in expression.operands]
    if expression.head in ("min", "max"):
        return f"std::{expression.head}({{{', '.join(operands)}}})"
    if len(operands) == 1 and expression.head == "-":
        return f"(-{operands[0]})"
    return (_BINARY.get(expression.head) or _CALLS[expression.head]).format(*operands)
