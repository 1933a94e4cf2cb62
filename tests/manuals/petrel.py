"""The manual of a third chip that does not exist, the Petrel array processor: a data sheet, in HTML.

Held out until the search was changed for what it showed. Instructions stand in tables, one for each unit, a row each, with
what they do in formulas; around them are register maps, encodings, cycle tables and errata, as in data sheets of chips.
"""

from __future__ import annotations

import html
import random
from collections.abc import Iterator

# unit -> what stands above its table, and (mnemonic, operands, formula, gloss, kind or nothing)
UNITS = {
    "ALU": ("Lane-wise arithmetic on two array registers, or on one and a constant.", [
        ("ADDV", "rd, ra, rb", "rd[i,j] = ra[i,j] + rb[i,j]", "", "add"),
        ("SUBV", "rd, ra, rb", "rd[i,j] = ra[i,j] - rb[i,j]", "", "sub"),
        ("MULV", "rd, ra, rb", "rd[i,j] = ra[i,j] * rb[i,j]", "", "mul"),
        ("SQRV", "rd, ra", "rd[i,j] = ra[i,j]^2", "", "square"),
        ("NEGV", "rd, ra", "rd[i,j] = -ra[i,j]", "", ""),
        ("ABSV", "rd, ra", "rd[i,j] = |ra[i,j]|", "", ""),
        ("SATV", "rd, ra, lo, hi", "rd[i,j] = min(max(ra[i,j], lo), hi)", "saturates to an interval", "clamp"),
        ("MACV", "rd, ra, rb", "rd[i,j] += ra[i,j] * rb[i,j]", "one rounding", ""),
        ("MINV", "rd, ra, rb", "rd[i,j] = min(ra[i,j], rb[i,j])", "", ""),
    ]),
    "BCU": ("Broadcasts: the second source has one element for each row (suffix R) or for each lane (suffix L).", [
        ("ADDL", "rd, ra, rv", "rd[i,j] = ra[i,j] + rv[j]", "vector to all rows", "add_row"),
        ("MULL", "rd, ra, rv", "rd[i,j] = ra[i,j] * rv[j]", "vector to all rows", "mul_row"),
        ("ADDR", "rd, ra, rv", "rd[i,j] = ra[i,j] + rv[i]", "scalar of the row", ""),
        ("SUBR", "rd, ra, rv", "rd[i,j] = ra[i,j] - rv[i]", "scalar of the row", "sub_column"),
        ("MULR", "rd, ra, rv", "rd[i,j] = ra[i,j] * rv[i]", "scalar of the row", "mul_column"),
    ]),
    "RCU": ("Reduces each row to one element. Results leave by the collector (3.6.2).", [
        ("RSUM", "rd, ra", "rd[i] = SUM(j) ra[i,j]", "", "sum"),
        ("RMAX", "rd, ra", "rd[i] = MAX(j) ra[i,j]", "", "max"),
        ("RMIN", "rd, ra", "rd[i] = MIN(j) ra[i,j]", "", ""),
        ("RARG", "rd, ra", "rd[i] = ARGMAX(j) ra[i,j]", "first of equal ones", ""),
        ("RAND", "rd, ra", "rd[i] = AND(j) ra[i,j]", "masks", ""),
        ("RSYN", "rd", "waits for rd", "collector fence", "settle"),
    ]),
    "SFU": ("Special functions, by interpolation in ROM tables; at most 2 ulp.", [
        ("EXPF", "rd, ra", "rd[i,j] = e^ra[i,j]", "", "exp"),
        ("LOGF", "rd, ra", "rd[i,j] = ln ra[i,j]", "", ""),
        ("SIGF", "rd, ra", "rd[i,j] = 1 / (1 + e^-ra[i,j])", "", "logistic"),
        ("TNHF", "rd, ra", "rd[i,j] = tanh ra[i,j]", "", ""),
        ("SPLF", "rd, ra", "rd[i,j] = ln(1 + e^ra[i,j])", "", "softplus"),
        ("RCPF", "rd, ra", "rd[i,j] = 1 / ra[i,j]", "", "reciprocal"),
        ("RSQF", "rd, ra", "rd[i,j] = ra[i,j]^-1/2", "", "rsqrt"),
        ("SQTF", "rd, ra", "rd[i,j] = ra[i,j]^1/2", "", ""),
        ("SINF", "rd, ra", "rd[i,j] = sin(2 pi ra[i,j])", "in turns", ""),
    ]),
    "PXU": ("Moves elements between the lanes of a row.", [
        ("XREV", "rd, ra", "rd[i,j] = ra[i,N-1-j]", "", "flip"),
        ("XROT", "rd, ra, n", "rd[i,(j+n) mod N] = ra[i,j]", "", "roll"),
        ("XSHL", "rd, ra, n", "rd[i,j] = ra[i,j+n] or 0", "", ""),
        ("XIDX", "rd, ra, rb", "rd[i,j] = ra[i,rb[i,j]]", "", ""),
        ("XTRN", "rd, ra", "rd[i,j] = ra[j,i]", "square arrays", ""),
        ("XPFX", "rd, ra", "rd[i,j] = SUM(k<=j) ra[i,k]", "inclusive", "scan"),
        ("XPFM", "rd, ra", "rd[i,j] = MAX(k<=j) ra[i,k]", "inclusive", ""),
    ]),
    "LSU": ("Transfers between array registers and the buffers of a launch.", [
        ("LDA", "rd, name", "rd = buffer name", "", "load"),
        ("STA", "name, ra", "buffer name = ra", "", "store"),
        ("PFA", "name", "prefetch", "", ""),
        ("FNC", "", "orders stores", "", ""),
    ]),
}  # fmt: skip
OPERATIONS = {row[0]: row[4] for _, rows in UNITS.values() for row in rows if row[4]}
SETTLED_FAULT = "machine check MC7 ({register})"
SETTLED = "MC7"
REGISTERS = ("CTRL", "STAT", "IRQEN", "IRQST", "CLKDIV", "PWRST", "DMASRC", "DMADST", "DMALEN", "TRCCTL", "TRCBUF", "PERF0", "PERF1", "TEMP", "ECCST", "DBGCTL")  # fmt: skip
FIELDS = ("enable", "busy", "threshold", "mode", "level", "reserved", "count", "parity", "source", "divider", "lock")
TEXTS = (
    "The {r} register is reset to 0x{n:04x}. Writes while bit {b} of STAT is set are ignored, and set bit {c} of IRQST.",
    "Supply ramps must reach {n} mV within {b} us; see table {c}.2 for the sequence of rails.",
    "Up to {b} outstanding bursts of {c} beats are kept in order; the address must be aligned to {n} bytes.",
    "Bits {b}:{c} hold the {f}; other values are reserved, and read as zero.",
    "Thermal throttling begins at {n} units of TEMP and halves the array clock until {b} units less are read.",
    "In the trace a record has {b} words, the first of which repeats the {f} of {r}.",
    "A double-bit error in bank {c} raises the interrupt of {r}; single-bit errors are counted in ECCST.",
    "After a warm reset {r} keeps its {f}, and the host must poll it for {n} cycles at least.",
)


def write_manual() -> str:
    """The whole data sheet, the same text on each call."""
    return (
        "<html><head><title>Petrel AP2 data sheet</title></head><body>\n"
        + "\n".join(_list_parts())
        + "\n</body></html>\n"
    )


def _list_parts() -> Iterator[str]:
    drawn = random.Random(5)
    yield "<h1>Petrel AP2 Array Processor</h1>" + _fill(drawn, 4)
    for number, topic in enumerate(("Pinout and supply", "Clocks and reset", "Host interface"), 1):
        yield f"<h2>1.{number} {topic}</h2>" + "".join(_fill(drawn, 9) for _ in range(12))
    yield "<h1>2 Registers</h1>"
    for number, register in enumerate(REGISTERS, 1):
        rows = [
            (f"{31 - 3 * bit}:{29 - 3 * bit}", drawn.choice(FIELDS), drawn.choice(("rw", "ro", "w1c")))
            for bit in range(9)
        ]
        yield (
            f"<h2>2.{number} {register}</h2>"
            + _fill(drawn, 3)
            + _table(("bits", "field", "access"), rows)
            + _fill(drawn, 6)
        )
    yield "<h1>3 Instruction set</h1><p>Array registers r0 to r31 hold M rows of N lanes; rv is one with a single row or lane.</p>"
    for number, (unit, (above, rows)) in enumerate(UNITS.items(), 1):
        yield (
            f"<h2>3.{number} {unit}</h2><p>{html.escape(above)}</p>"
            + _table(
                ("syntax", "operation", "remarks"),
                [(f"{name} {operands}", formula, gloss) for name, operands, formula, gloss, _ in rows],
            )
            + _fill(drawn, 5)
        )
        if unit == "SFU":
            yield "<h2>3.6.1 Rounding</h2>" + _fill(drawn, 6)
            yield (
                "<h2>3.6.2 Collector</h2><p>The RCU retires out of order. Reading or storing its destination before RSYN rd "
                "raises machine check MC7.</p>" + _fill(drawn, 2)
            )
    yield "<h1>4 Encoding</h1>"
    for unit, (_, rows) in UNITS.items():
        words = [(name, f"0x{drawn.randrange(1 << 12):03x}", str(drawn.randrange(1, 9))) for name, *_ in rows]
        yield f"<h2>4 {unit}</h2>" + _table(("mnemonic", "opcode", "issue slots"), words) + _fill(drawn, 8)
    yield "<h1>5 Machine checks</h1>" + _table(
        ("code", "cause", "see"),
        [("MC1", "undefined opcode", "4"), ("MC3", "shape of sources", "3.1"), ("MC5", "buffer name", "3.6"), ("MC7", "collector not empty", "3.6.2")],
    )  # fmt: skip
    yield "<h1>6 Errata</h1>"
    for number in range(1, 25):
        yield f"<h2>6.{number} Erratum AP2-{number:03}</h2>" + "".join(_fill(drawn, 7) for _ in range(3))


def _fill(drawn: random.Random, count: int) -> str:
    return f"<p>{' '.join(_draw_text(drawn) for _ in range(count))}</p>"


def _draw_text(drawn: random.Random) -> str:
    numbers = {"n": drawn.randrange(16, 4096), "b": drawn.randrange(2, 31), "c": drawn.randrange(1, 16)}
    return drawn.choice(TEXTS).format(r=drawn.choice(REGISTERS), f=drawn.choice(FIELDS), **numbers)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    cells = [*[f"<tr>{''.join(f'<th>{name}</th>' for name in head)}</tr>"]]
    cells += [f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows]
    return f"<table>{''.join(cells)}</table>"
