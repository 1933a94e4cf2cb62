"""The manual of a chip that does not exist, the Kestrel K7: a Markdown book of 60 pages, made from the lists below.

It was written before the code that cuts and searches manuals was read. `OPERATIONS` says which of its instructions the
simulator (`machine.py`) carries out; what an instruction is called and how it is written stands in the manual alone.
"""

from __future__ import annotations

import random

OPERATIONS = {
    "QSUMR": "sum", "QPEAK": "max", "LADD": "scan", "XREV": "flip", "XROT": "roll", "SGMD": "logistic",
    "BNDS": "clamp", "SQRX": "square", "RSQE": "rsqrt", "MCOL": "mul_column", "SCOL": "sub_column", "EXPN": "exp",
    "RCPN": "reciprocal", "MULE": "mul", "ADDE": "add", "SPLS": "softplus", "MROW": "mul_row", "AROW": "add_row",
    "SETTL": "settle", "PULL": "load", "PUSH": "store",
}  # fmt: skip
SETTLED_FAULT = "fault K-17 in {register}: fold pending"
SETTLED = "Fold results and pending state"  # the section that says what K-17 is and how SETTL is written

# mnemonic, title, operands, what it does; by chapter
INSTRUCTIONS = {
    "Element arithmetic": [
        ("ADDE", "Add elements", "rd, ra, rb", "adds corresponding elements of two tiles of equal shape"),
        ("SUBE", "Subtract elements", "rd, ra, rb", "subtracts the elements of the second tile from those of the first"),
        ("MULE", "Multiply elements", "rd, ra, rb", "multiplies corresponding elements of two tiles of equal shape"),
        ("FMAE", "Fused multiply-add", "rd, ra, rb, rc", "multiplies two tiles and adds a third with one rounding"),
        ("NEGE", "Negate", "rd, ra", "changes the sign of every element"),
        ("ABSE", "Magnitude", "rd, ra", "clears the sign bit of every element, which gives its absolute value"),
        ("MINE", "Smaller of two", "rd, ra, rb", "keeps the smaller of two corresponding elements"),
        ("MAXE", "Larger of two", "rd, ra, rb", "keeps the larger of two corresponding elements"),
        ("BNDS", "Bound between limits", "rd, ra, lo, hi", "clamps every element to an interval, given as two literals"),
        ("SQRX", "Square", "rd, ra", "squares every element without reading a second operand"),
        ("RNDE", "Round to integer", "rd, ra", "rounds every element to the nearest integer, ties to even"),
        ("TRNC", "Truncate", "rd, ra", "drops the fraction of every element towards zero"),
    ],
    "The function unit": [
        ("EXPN", "Natural exponential", "rd, ra", "replaces every element by e raised to it"),
        ("LOGN", "Natural logarithm", "rd, ra", "replaces every element by its logarithm to base e"),
        ("SGMD", "Logistic curve", "rd, ra", "evaluates the sigmoid 1 / (1 + exp(-x)) of every element by a table"),
        ("TNHX", "Hyperbolic tangent", "rd, ra", "evaluates tanh of every element by the odd table"),
        ("RCPN", "Reciprocal", "rd, ra", "divides one by every element, correctly rounded"),
        ("RSQE", "Reciprocal square root", "rd, ra", "gives one over the square root of every element"),
        ("SQTE", "Square root", "rd, ra", "gives the square root of every element"),
        ("SPLS", "Smooth ramp", "rd, ra", "evaluates softplus, log(1 + exp(x)), without overflow"),
        ("ERFX", "Error function", "rd, ra", "evaluates erf of every element, as the exact GELU needs it"),
        ("SINP", "Sine of turns", "rd, ra", "evaluates the sine of an angle that is given in turns"),
        ("COSP", "Cosine of turns", "rd, ra", "evaluates the cosine of an angle that is given in turns"),
    ],
    "Folds over a row": [
        ("QSUMR", "Sum of a row", "rd, ra", "folds every row to one element, the sum over its lanes"),
        ("QPRDR", "Product of a row", "rd, ra", "folds every row to one element, the product over its lanes"),
        ("QPEAK", "Maximum of a row", "rd, ra", "folds every row to its largest element, the row maximum"),
        ("QDALE", "Minimum of a row", "rd, ra", "folds every row to its smallest element"),
        ("QWHER", "Place of the maximum", "rd, ra", "folds every row to the index of its largest element (argmax)"),
        ("QANYR", "Any lane set", "rd, ra", "folds every row to one where some lane is not zero"),
        ("QALLR", "All lanes set", "rd, ra", "folds every row to one where no lane is zero"),
        ("QCNTR", "Population of a row", "rd, ra", "counts the lanes of every row that are not zero"),
        ("SETTL", "Settle a fold", "rd", "waits until the fold tree of a register has drained and clears its pending bit"),
    ],
    "Ladders": [
        ("LADD", "Additive ladder", "rd, ra", "leaves in each lane the running total of the lanes up to it (an inclusive scan)"),
        ("LMUL", "Multiplicative ladder", "rd, ra", "leaves in each lane the running product of the lanes up to it"),
        ("LMAX", "Maximum ladder", "rd, ra", "leaves in each lane the largest lane up to it (a cumulative maximum)"),
        ("LSEG", "Segmented ladder", "rd, ra, rb", "restarts the additive ladder wherever the flag tile is not zero"),
    ],
    "Lane exchange": [
        ("XREV", "Reverse lanes", "rd, ra", "mirrors every row, so that its last lane comes first (a flip)"),
        ("XROT", "Rotate lanes", "rd, ra, count", "rolls every row by a literal count of lanes towards higher indices"),
        ("XSHL", "Shift lanes down", "rd, ra, count", "moves every row towards lane zero and fills with zeros"),
        ("XSHR", "Shift lanes up", "rd, ra, count", "moves every row away from lane zero and fills with zeros"),
        ("XZIP", "Interleave", "rd, ra, rb", "takes lanes from two tiles in turn"),
        ("XUNZ", "Deinterleave", "rd, ra, half", "takes the even or the odd lanes of a tile"),
        ("XPRM", "Permute by index", "rd, ra, rb", "gathers lanes of every row by an index tile"),
        ("XBFY", "Butterfly", "rd, ra, log", "exchanges lanes whose index differs in one bit"),
        ("XTRN", "Transpose a block", "rd, ra", "exchanges rows and columns of a square block"),
    ],
    "Broadcast operations": [
        ("MCOL", "Scale rows by a column", "rd, ra, rc", "multiplies every row by the element that a column has for it"),
        ("ACOL", "Add a column", "rd, ra, rc", "adds to every row the element that a column has for it"),
        ("SCOL", "Subtract a column", "rd, ra, rc", "subtracts from every row the element that a column has for it"),
        ("MROW", "Scale lanes by a row", "rd, ra, rv", "multiplies every row by one row vector of weights, lane by lane"),
        ("AROW", "Add a row", "rd, ra, rv", "adds one row vector, such as a bias, to every row"),
        ("SROW", "Subtract a row", "rd, ra, rv", "subtracts one row vector from every row"),
        ("FILL", "Fill with a literal", "rd, value", "sets every element of a tile to one literal"),
    ],
    "Selection and comparison": [
        ("CMGT", "Compare greater", "rd, ra, rb", "sets lanes to one where the first operand is greater"),
        ("CMGE", "Compare greater or equal", "rd, ra, rb", "sets lanes to one where the first operand is not smaller"),
        ("CMEQ", "Compare equal", "rd, ra, rb", "sets lanes to one where both operands are equal"),
        ("SELM", "Select by mask", "rd, rm, ra, rb", "takes lanes of one tile where a mask is set, else of another"),
        ("CPRS", "Compress", "rd, rm, ra", "moves the lanes under a mask together at the row's beginning"),
        ("XPND", "Expand", "rd, rm, ra", "spreads a compressed row over the lanes under a mask"),
    ],
    "Conversion": [
        ("CVHF", "To half precision", "rd, ra", "narrows every element to ten fraction bits"),
        ("CVBF", "To brain float", "rd, ra", "narrows every element to seven fraction bits"),
        ("CVIB", "To signed bytes", "rd, ra, scale", "quantises every element to eight bits by a literal scale"),
        ("CVBI", "From signed bytes", "rd, ra, scale", "widens bytes and multiplies them by a literal scale"),
        ("PKNB", "Pack nibbles", "rd, ra", "packs two four-bit elements into one byte, low nibble first"),
        ("UPNB", "Unpack nibbles", "rd, ra", "unpacks each byte to two four-bit elements, low nibble first"),
    ],
    "Tile movement": [
        ("PULL", "Pull a tile", "rd, name", "brings an argument of the program from memory to a register"),
        ("PUSH", "Push a tile", "name, ra", "writes a register to an argument of the program in memory"),
        ("COPY", "Copy a register", "rd, ra", "copies one register to another"),
        ("PFCH", "Prefetch", "name", "begins to bring an argument without waiting for it"),
        ("EVCT", "Evict", "name", "drops an argument from the near memory"),
        ("FNCE", "Fence", "", "waits for all tiles that are under way"),
    ],
}  # fmt: skip
FAULTS = {
    "K-03": ("misaligned tile", "the address of an argument is no multiple of 64 bytes", "align the argument"),
    "K-05": ("shape mismatch", "two operands of an element instruction have different shapes", "use a broadcast operation"),
    "K-08": ("unwritten register", "a register is read before anything was written to it", "write it, or begin with FILL"),
    "K-11": ("function unit domain", "a logarithm or a root was asked of a negative element", "bound the operand with BNDS"),
    "K-13": ("literal out of range", "a literal does not fit its field of twelve bits", "load the value as a tile"),
    "K-17": ("fold pending", "the result of a fold is read while its tree is still draining", "write SETTL for that register"),
    "K-21": ("lane index", "an index tile of XPRM names a lane that the row does not have", "bound the index"),
    "K-22": ("rotate count", "a count of XROT is larger than the row", "take it modulo the row"),
    "K-26": ("mask shape", "a mask has another shape than the tiles it selects from", "broadcast the mask first"),
    "K-31": ("near memory full", "no slot of the near memory is free for a PULL", "evict an argument"),
    "K-34": ("double push", "an argument is pushed twice without a fence", "write FNCE between the two"),
    "K-40": ("watchdog", "no instruction retired for two million cycles", "look for a fence that waits for itself"),
}  # fmt: skip
CHAPTERS = {
    "Introduction": [
        ("Who should read this book", "compiler writers and programmers of operators", "programmer"),
        ("Conventions of this book", "typefaces, signs and the numbering of bits", "notation"),
        ("Revision history", "what changed between silicon steppings A0 and C2", "stepping"),
        ("Block diagram", "the sequencer, the element pipes, the function unit and the fold trees", "block"),
    ],
    "Programming model": [
        ("Registers and tiles", "sixteen tile registers r0 to r15 of any number of rows", "register"),
        ("Rows, lanes and columns", "the words that this book uses for parts of a tile", "lane"),
        ("Number formats", "single precision inside, others at the border", "format"),
        ("Rounding and exceptions", "the rounding modes and which flags are sticky", "rounding"),
        ("Program order and retirement", "in which order results become visible", "retirement"),
        ("Predication", "why there is none, and what is written instead", "predicate"),
        ("Control flow", "hardware loops and their counters", "loop"),
    ],
    "Memory": [
        ("Address map", "regions of the far and the near memory", "region"),
        ("Alignment", "what must be aligned to 64 bytes", "alignment"),
        ("Banks and conflicts", "how rows are spread over thirty-two banks", "bank"),
        ("Coherence with the host", "doorbells and the order of host writes", "doorbell"),
        ("Error correction", "what is corrected and what is reported", "syndrome"),
    ],
    "The assembler": [
        ("Source lines", "one instruction a line, comments after a semicolon", "line"),
        ("Directives", "names that begin with a full stop", "directive"),
        ("Literals", "decimal and hexadecimal numbers of twelve bits", "literal"),
        ("Macros", "text that is put in place before assembly", "macro"),
        ("Listings", "the columns that the assembler prints", "listing"),
    ],
    "Performance": [
        ("Issue rules", "which pipes may begin in the same cycle", "issue"),
        ("Latency of the element pipes", "four cycles from issue to use", "latency"),
        ("Latency of the function unit", "eleven cycles, one table port", "table"),
        ("Latency of the fold trees", "a fold of 64 lanes takes six levels", "level"),
        ("Counters", "thirty-two event counters and how they are read", "counter"),
        ("Power states", "clock gating and when it costs a stall", "gating"),
    ],
}
REMARKS = (
    "The {unit} accepts one such operation every {n} cycles as long as no other operation of its class is in flight.",
    "On stepping A0 the result was one unit in the last place off for denormal operands; erratum {n} has the workaround.",
    "Software that was written for the K5 finds the same behaviour, except that the {word} is now checked.",
    "When the sequencer is single stepped, the {word} is shown in the debug window after retirement, not after issue.",
    "A compiler should keep at least {n} independent operations between this one and the first reader of its result.",
    "The performance counter {n} counts how often the {unit} had to wait for the {word}.",
    "If an interrupt arrives between issue and retirement, the operation is completed first and the {word} saved after.",
    "The host sees no trace of this unless the {word} is written out explicitly at the end of a program.",
    "There is no form with a literal in place of a register; the assembler reports that as a syntax error.",
    "Bits {n} and above of the status word are reserved here and read as zero on all steppings so far.",
    "The energy of one such operation is about {n} picojoules for a full tile at nominal voltage and 45 degrees.",
    "Two of these may be paired in one bundle if their destination registers differ in the lowest bit.",
    "The reference model of the toolchain gives the same bits as silicon for all operands, including infinities.",
    "It is good style to place the {word} first and to leave the scheduling to the assembler's reorder pass.",
)


def write_manual() -> str:
    """The whole book, the same text on each call."""
    drawn = random.Random(7)
    parts = ["# Kestrel K7 Programmer's Reference\n\nThis book describes the Kestrel K7 tile processor.\n"]
    for number, (chapter, sections) in enumerate(CHAPTERS.items(), 1):
        parts.append(f"## {number} {chapter}\n")
        for place, (title, subject, word) in enumerate(sections, 1):
            text = _remark(drawn, 14, chapter.lower(), word)
            parts.append(f"### {number}.{place} {title}\n\nThis section covers {subject}. {text}\n")
    for number, (chapter, instructions) in enumerate(INSTRUCTIONS.items(), len(CHAPTERS) + 1):
        parts.append(f"## {number} {chapter}\n\nThe instructions of this chapter, one section each.\n")
        for place, described in enumerate(instructions, 1):
            parts.append(_describe(drawn, f"{number}.{place}", chapter, *described))
        if chapter == "Folds over a row":
            parts.append(
                f"### {number}.{len(instructions) + 1} {SETTLED}\n\nA fold leaves its register pending. Whoever reads a "
                "pending register, a PUSH included, takes fault K-17. A program therefore settles the register after the "
                "fold and before the first reader:\n\n```\nSETTL r1    ; form: SETTL rd\n```\n\nRegisters that no fold "
                "wrote need no settling.\n"
            )
    parts.append("## Appendix A Faults\n\nA fault stops the program. The host reads its number and the register.\n")
    for number, (name, cause, remedy) in FAULTS.items():
        text = _remark(drawn, 3, "fault logic", "fault record")
        parts.append(f"### {number} {name}\n\nRaised when {cause}. Remedy: {remedy}. {text}\n")
    return "\n".join(parts)


def _remark(drawn: random.Random, count: int, unit: str, word: str) -> str:
    chosen = drawn.sample(REMARKS, count)
    return " ".join(remark.format(unit=unit, word=word, n=drawn.randrange(2, 60)) for remark in chosen)


def _describe(drawn: random.Random, number: str, chapter: str, name: str, title: str, operands: str, does: str) -> str:
    """The section of one instruction: its form, what it does, its encoding, its faults, an example."""
    form = f"{name} {operands}".strip()
    registers = [word for word in operands.split(", ") if word.startswith("r")]
    fields = "\n".join(
        f"| {7 + 5 * at}-{11 + 5 * at} | {word} | a tile register |" for at, word in enumerate(registers)
    )
    remarks = _remark(drawn, 11, chapter.lower(), "destination register")
    example = form
    for at, word in enumerate(registers):
        example = example.replace(word, f"r{at + 1}", 1)
    return (
        f"### {number} {name}: {title}\n\n**Form.** `{form}`\n\n**Operation.** {name} {does}. {remarks}\n\n"
        f"| bits | field | meaning |\n|---|---|---|\n| 0-6 | opcode | {drawn.randrange(128):#04x} |\n{fields}\n\n"
        f"**Example.**\n\n```\n{example:<24}; {title.lower()}\n```\n"
    )
