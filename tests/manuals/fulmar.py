"""The manual of a fifth chip that does not exist, the Fulmar F1: an instruction reference in plain text, man page style.

Held out: the search was not changed after it was read. Each entry has a synopsis, a description by a technical writer,
and the operation as a loop; many entries differ in one word, and forms with masks, with saturation and in half precision
stand beside the plain ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

# mnemonic, operands, description, what a loop body does; of one group
GROUPS = {
    "Packed arithmetic": [
        ("pk_addf", "r1, r2, r3", "Adds the packed elements of the second source to those of the first.", "d[j] := a[j] + b[j]"),
        ("pk_subf", "r1, r2, r3", "Subtracts the packed elements of the second source from those of the first.", "d[j] := a[j] - b[j]"),
        ("pk_mulf", "r1, r2, r3", "Multiplies packed elements pairwise.", "d[j] := a[j] * b[j]"),
        ("pk_madf", "r1, r2, r3, r4", "Multiplies pairwise and accumulates, rounding once.", "d[j] := a[j] * b[j] + c[j]"),
        ("pk_sqrf", "r1, r2", "Raises packed elements to the second power.", "d[j] := a[j] * a[j]"),
        ("pk_negf", "r1, r2", "Flips the sign bit of packed elements.", "d[j] := -a[j]"),
        ("pk_absf", "r1, r2", "Drops the sign bit of packed elements.", "d[j] := abs(a[j])"),
        ("pk_maxf", "r1, r2, r3", "Selects the larger of packed elements pairwise.", "d[j] := max(a[j], b[j])"),
        ("pk_minf", "r1, r2, r3", "Selects the smaller of packed elements pairwise.", "d[j] := min(a[j], b[j])"),
        ("pk_limf", "r1, r2, lo, hi", "Restricts packed elements to a closed range given by two immediates.", "d[j] := a[j] < lo ? lo : a[j] > hi ? hi : a[j]"),
    ],
    "Elementary functions": [
        ("ef_exp", "r1, r2", "Computes the natural exponential of packed elements.", "d[j] := EXP(a[j])"),
        ("ef_exp2", "r1, r2", "Computes powers of two with packed exponents.", "d[j] := 2 ** a[j]"),
        ("ef_log", "r1, r2", "Computes the natural logarithm of packed elements.", "d[j] := LOG(a[j])"),
        ("ef_lgs", "r1, r2", "Evaluates the logistic sigmoid of packed elements.", "d[j] := 1.0 / (1.0 + EXP(-a[j]))"),
        ("ef_tanh", "r1, r2", "Evaluates the hyperbolic tangent of packed elements.", "d[j] := TANH(a[j])"),
        ("ef_sp", "r1, r2", "Evaluates the logarithm of one plus the exponential of packed elements, without overflow.", "d[j] := LOG(1.0 + EXP(a[j]))"),
        ("ef_rcp", "r1, r2", "Computes reciprocals of packed elements.", "d[j] := 1.0 / a[j]"),
        ("ef_sqrt", "r1, r2", "Computes square roots of packed elements.", "d[j] := SQRT(a[j])"),
        ("ef_isr", "r1, r2", "Computes inverse square roots of packed elements.", "d[j] := 1.0 / SQRT(a[j])"),
        ("ef_sin", "r1, r2", "Computes the sine of packed elements, in radians.", "d[j] := SIN(a[j])"),
        ("ef_erf", "r1, r2", "Computes the error function of packed elements.", "d[j] := ERF(a[j])"),
    ],
    "Horizontal operations": [
        ("hz_add", "r1, r2", "Adds up all elements of a row; one element of the destination row is written.", "d := d + a[j]"),
        ("hz_mul", "r1, r2", "Multiplies all elements of a row together.", "d := d * a[j]"),
        ("hz_max", "r1, r2", "Finds the maximum over all elements of a row.", "d := max(d, a[j])"),
        ("hz_min", "r1, r2", "Finds the minimum over all elements of a row.", "d := min(d, a[j])"),
        ("hz_amax", "r1, r2", "Finds the index of the maximum over all elements of a row.", "if a[j] > a[d]: d := j"),
        ("hz_cnt", "r1, r2", "Counts the elements of a row that are not zero.", "d := d + (a[j] != 0)"),
        ("hz_pre", "r1, r2", "Computes the inclusive prefix sums of a row.", "s := s + a[j]; d[j] := s"),
        ("hz_prem", "r1, r2", "Computes the inclusive prefix maxima of a row.", "s := max(s, a[j]); d[j] := s"),
        ("hz_wait", "r1", "Blocks until a horizontal result is complete.", "wait(d)"),
    ],
    "Shuffles": [
        ("sh_inv", "r1, r2", "Inverts the order of the elements of a row.", "d[j] := a[VL - 1 - j]"),
        ("sh_rot", "r1, r2, n", "Rotates the elements of a row upwards by an immediate.", "d[(j + n) % VL] := a[j]"),
        ("sh_shl", "r1, r2, n", "Shifts the elements of a row downwards, filling with zeros.", "d[j] := j + n < VL ? a[j + n] : 0"),
        ("sh_perm", "r1, r2, r3", "Permutes the elements of a row by an index vector.", "d[j] := a[i[j]]"),
        ("sh_zip", "r1, r2, r3", "Interleaves the low halves of two rows.", "d[2 * j] := a[j]; d[2 * j + 1] := b[j]"),
        ("sh_tr", "r1, r2", "Transposes a square tile.", "d[i, j] := a[j, i]"),
    ],
    "Operations with replicated sources": [
        ("rp_addr", "r1, r2, r3", "Adds the same row to every row of a tile.", "d[i, j] := a[i, j] + b[j]"),
        ("rp_mulr", "r1, r2, r3", "Multiplies every row of a tile by the same row, elementwise.", "d[i, j] := a[i, j] * b[j]"),
        ("rp_subr", "r1, r2, r3", "Subtracts the same row from every row of a tile.", "d[i, j] := a[i, j] - b[j]"),
        ("rp_addc", "r1, r2, r3", "Adds one element per row, replicated over the columns.", "d[i, j] := a[i, j] + b[i]"),
        ("rp_mulc", "r1, r2, r3", "Multiplies each row by one element, replicated over the columns.", "d[i, j] := a[i, j] * b[i]"),
        ("rp_subc", "r1, r2, r3", "Subtracts one element per row, replicated over the columns.", "d[i, j] := a[i, j] - b[i]"),
    ],
    "Transfers": [
        ("tx_in", "r1, name", "Copies a kernel argument to a tile register.", "d := MEM[name]"),
        ("tx_out", "name, r1", "Copies a tile register to a kernel argument.", "MEM[name] := a"),
        ("tx_pref", "name", "Prefetches a kernel argument.", "touch(name)"),
        ("tx_sync", "", "Orders earlier stores before later ones.", "drain()"),
    ],
}  # fmt: skip
OPERATIONS = {
    "pk_addf": "add", "pk_subf": "sub", "pk_mulf": "mul", "pk_sqrf": "square", "pk_limf": "clamp", "ef_exp": "exp",
    "ef_lgs": "logistic", "ef_sp": "softplus", "ef_rcp": "reciprocal", "ef_isr": "rsqrt", "hz_add": "sum", "hz_max": "max",
    "hz_pre": "scan", "sh_inv": "flip", "sh_rot": "roll", "rp_addr": "add_row", "rp_mulr": "mul_row", "rp_subc": "sub_column",
    "rp_mulc": "mul_column", "hz_wait": "settle", "tx_in": "load", "tx_out": "store",
}  # fmt: skip
SETTLED_FAULT = "exception HZI on {register}"
SETTLED = "Completion of horizontal results"
FORMS = ("masked", "zeroing", "half precision", "saturating")
NOTES = (
    "Denormal inputs are treated as zero when bit {n} of FCSR is set.",
    "The throughput is one per {m} cycles on F1 and one per {n} cycles on F1e.",
    "Latency: {n} cycles to the first, {m} cycles more to the last element.",
    "Raises inexact and, for signalling inputs, invalid; flags are sticky until FCSR is written.",
    "The destination may be the same register as a source, except in the {form} form.",
    "Encoded in {n} bits with prefix 0x{n}{m}; the assembler picks the short encoding where it can.",
    "Elements beyond VL are left unchanged, unless tail-agnostic mode {m} is selected.",
    "Available since firmware {m}.{n}. Earlier parts trap and emulate, at about {n}0 cycles.",
    "Results are bit-identical between F1 and the reference simulator in mode {m}.",
    "The {form} form takes {m} cycles more, as it reads the old destination.",
    "Not interruptible: an interrupt is taken after element {n}, and the rest is replayed.",
    "Uses pipe {m}; pairs with any instruction of pipe {n} that has another destination.",
    "In debug mode a breakpoint on it fires before VL is read.",
    "The compiler emits it for loops of {n} iterations or more at level {m}.",
)
CHAPTERS = (
    "Scope of this reference", "Register file", "Vector length", "Modes and FCSR", "Exceptions", "Memory model", "Pipes",
    "Encoding", "Assembler syntax", "Calling convention", "Performance monitors", "Errata", "Differences of F1e",
)  # fmt: skip


def write_manual() -> str:
    """The whole reference, the same text on each call."""
    return "\n\n".join(_list_parts(random.Random(31))) + "\n"


def _list_parts(drawn: random.Random) -> Iterator[str]:
    yield "Fulmar F1 Instruction Reference\n==============================="
    for number, chapter in enumerate(CHAPTERS, 1):
        yield f"1.{number} {chapter}"
        yield from (_note(drawn, 8) for _ in range(3))
    yield f"1.{len(CHAPTERS) + 1} {SETTLED}"
    yield (
        "A horizontal instruction retires before its result is complete. Reading the destination, by a store too, raises "
        "exception HZI. Software waits with\n\n    hz_wait r1\n\nfor the register in question."
    )
    yield _note(drawn, 5)
    for number, (group, rows) in enumerate(GROUPS.items(), 2):
        yield f"{number} {group}"
        for place, (name, operands, text, body) in enumerate(rows, 1):
            yield f"{number}.{place} {name}"
            yield f"Synopsis\n\n    {name} {operands}".rstrip()
            yield f"Description. {text} {_note(drawn, 5)}"
            yield f"Operation\n\n    for j in 0 .. VL-1: {body}"
            yield _note(drawn, 7)


def _note(drawn: random.Random, count: int) -> str:
    return " ".join(
        note.format(n=drawn.randrange(11, 64), m=drawn.randrange(1, 9), form=drawn.choice(FORMS))
        for note in drawn.sample(NOTES, count)
    )
