"""The manual of another chip that does not exist, the Morrow tile engine: a guide of 60 pages in plain text.

Other than the Kestrel's it is arranged by what one wants to do, says in prose how an instruction is written, and marks
its headings by underlines and numbers.
"""

from __future__ import annotations

import random

OPERATIONS = {
    "t.fold.add": "sum", "t.fold.top": "max", "t.sweep.add": "scan", "t.lane.back": "flip", "t.lane.turn": "roll",
    "u.sig": "logistic", "t.fence.in": "clamp", "t.self.mul": "square", "u.irt": "rsqrt", "b.tall.mul": "mul_column",
    "b.tall.sub": "sub_column", "u.exp": "exp", "u.inv": "reciprocal", "t.mul": "mul", "t.add": "add", "u.ramp": "softplus",
    "b.wide.mul": "mul_row", "b.wide.add": "add_row", "t.drain": "settle", "m.get": "load", "m.put": "store",
}  # fmt: skip
SETTLED_FAULT = "trap 0x2C raised by {register}"
SETTLED = "Trap 0x2C, an undrained tile"

# chapter -> title, instruction, operands, what is said first
TOPICS = {
    "Whole tiles, element by element": [
        ("Adding two tiles", "t.add", "into, left, right", "Two tiles of one shape are added element by element"),
        ("Taking the difference of two tiles", "t.sub", "into, left, right", "The right tile is taken away from the left one"),
        ("Products of two tiles", "t.mul", "into, left, right", "Two tiles of one shape are multiplied element by element"),
        ("Multiplying a tile with itself", "t.self.mul", "into, from", "Squares of all elements, which need no second operand port"),
        ("Keeping elements inside an interval", "t.fence.in", "into, from, low, high", "Every element that lies outside is moved to the nearer limit, that is, clamped"),
        ("The smaller and the larger element", "t.low", "into, left, right", "The smaller of two corresponding elements is kept; t.high keeps the larger"),
        ("Changing signs", "t.neg", "into, from", "All signs are inverted, those of zeros and infinities too"),
        ("Absolute values", "t.abs", "into, from", "All signs are cleared"),
        ("Rounding to whole numbers", "t.round", "into, from", "Elements become whole numbers, halves the even one"),
        ("Multiplying and adding at once", "t.mad", "into, left, right, more", "A product and a sum with one rounding at the end"),
    ],
    "Curves of the unary unit": [
        ("The exponential", "u.exp", "into, from", "The natural exponential of every element, exact to one unit in the last place"),
        ("The natural logarithm", "u.log", "into, from", "The logarithm of every element; of zero it is minus infinity"),
        ("The logistic function", "u.sig", "into, from", "The sigmoid of every element, from a table of 512 segments"),
        ("The hyperbolic tangent", "u.tanh", "into, from", "The tangent of the same table, folded about the origin"),
        ("One over an element", "u.inv", "into, from", "The reciprocal of every element"),
        ("Roots", "u.root", "into, from", "The square root of every element"),
        ("One over the root", "u.irt", "into, from", "The reciprocal of the square root, as norms need it"),
        ("A ramp without a corner", "u.ramp", "into, from", "Softplus, the smooth form of the rectifier, stable for large elements"),
        ("The error function", "u.erf", "into, from", "The Gauss error function of every element"),
        ("Waves", "u.wave", "into, from", "The sine of an angle in full turns; the cosine is a quarter turn ahead"),
    ],
    "From a row to one element": [
        ("Totals of rows", "t.fold.add", "into, from", "The lanes of every row are added up, so that one column of totals is left"),
        ("The largest element of a row", "t.fold.top", "into, from", "The lanes of every row are compared, so that a column of maxima is left"),
        ("The smallest element of a row", "t.fold.low", "into, from", "As before, with minima"),
        ("Where the largest element lies", "t.fold.at", "into, from", "The index of the first largest lane of every row"),
        ("Products of rows", "t.fold.mul", "into, from", "The lanes of every row are multiplied"),
        ("Counting lanes", "t.fold.count", "into, from", "The lanes of every row that are not zero are counted"),
        ("How folds end", "t.drain", "tile", "A fold goes on in the background, and its column can be read only once it has been drained"),
    ],
    "Sums so far": [
        ("Running totals along a row", "t.sweep.add", "into, from", "Lane i of the result is the sum of the lanes 0 to i, which others call a prefix sum or cumsum"),
        ("Running products along a row", "t.sweep.mul", "into, from", "The same with products"),
        ("Running maxima along a row", "t.sweep.top", "into, from", "The same with the largest lane so far"),
        ("Sweeps that begin anew", "t.sweep.seg", "into, from, marks", "Where a mark is set the sum begins anew"),
    ],
    "Moving lanes": [
        ("Reading a row backwards", "t.lane.back", "into, from", "The order of lanes is reversed in every row"),
        ("Turning a row", "t.lane.turn", "into, from, steps", "Lanes move up by so many steps, and those that leave at the end come in at the beginning (a roll)"),
        ("Shifting a row", "t.lane.shift", "into, from, steps", "Lanes move, and zeros come in"),
        ("Two tiles into one", "t.lane.zip", "into, left, right", "Lanes of both in turn"),
        ("One tile into two", "t.lane.split", "into, from, which", "Even or odd lanes"),
        ("Lanes by an index", "t.lane.pick", "into, from, index", "A gather inside every row"),
        ("Rows become columns", "t.turn.over", "into, from", "A square block is transposed"),
    ],
    "A tile with a column or a row": [
        ("Scaling each row by its own factor", "b.tall.mul", "into, from, column", "A column has one factor for each row"),
        ("Taking each row's own offset away", "b.tall.sub", "into, from, column", "A column has one offset for each row, such as its maximum"),
        ("Adding each row's own offset", "b.tall.add", "into, from, column", "The same with a sum"),
        ("Scaling all rows by one vector", "b.wide.mul", "into, from, vector", "A vector of weights is multiplied into every row, lane by lane"),
        ("Adding one vector to all rows", "b.wide.add", "into, from, vector", "A vector, often a bias, is added to every row"),
        ("A tile of one number", "b.fill", "into, number", "All elements become that literal"),
    ],
    "Masks": [
        ("Comparing tiles", "k.more", "into, left, right", "A mask of the lanes where the left one is greater"),
        ("Choosing by a mask", "k.pick", "into, mask, yes, no", "Lanes of one tile or of another"),
        ("Packing lanes together", "k.pack", "into, mask, from", "Lanes under the mask move to the beginning"),
        ("A triangle", "k.tri", "into, diagonal", "The mask of a causal attention"),
    ],
    "Narrow numbers": [
        ("Half precision", "n.half", "into, from", "Elements with ten bits of fraction"),
        ("Brain floats", "n.brain", "into, from", "Elements with seven bits of fraction"),
        ("Signed bytes", "n.byte", "into, from, scale", "Quantised elements with one scale"),
        ("Nibbles", "n.nib", "into, from", "Two elements in a byte, the low one first"),
    ],
    "Tiles and memory": [
        ("Getting a tile", "m.get", "into, name", "An argument is brought from memory"),
        ("Putting a tile", "m.put", "name, from", "A tile is written to an argument"),
        ("Getting ahead of time", "m.hint", "name", "An argument is on its way before it is needed"),
        ("Order of puts", "m.order", "", "All puts before it are seen before all after it"),
    ],
}  # fmt: skip
TRAPS = {
    "0x04": ("a name that is none", "m.get or m.put names no argument of the program", "the name in the listing"),
    "0x0A": ("two shapes", "t.add, t.mul or their like are given tiles of two shapes", "the b. instructions, which widen"),
    "0x11": ("an empty tile", "a tile is read before anything wrote it", "the order of the program"),
    "0x19": ("a root of less than nothing", "u.root, u.irt or u.log meet an element below zero", "t.fence.in before it"),
    "0x2C": ("an undrained tile", "the column of a fold is read, or put, while the fold goes on", "t.drain"),
    "0x33": ("too many steps", "t.lane.turn or t.lane.shift are given more steps than lanes", "the literal"),
    "0x41": ("memory that is not there", "a tile does not fit the near memory", "smaller tiles"),
}  # fmt: skip
SUBJECTS = (
    "The tour of the machine", "How this guide is arranged", "Boards and their switches", "Clocks and resets", "The host's view",
    "Tiles and their names", "What a lane is", "Numbers inside the engine", "The two issue ports", "Hazards that the engine sees",
    "Hazards that it does not see", "Reading the counters", "The trace buffer", "Debugging with breakpoints", "Temperature and throttling",
    "Errata of the first silicon", "Moving from the Morrow 2", "The assembler's options", "Listings", "Labels and loops", "Macros",
    "Far memory", "Near memory", "Queues and doorbells", "Pages and protection", "Correction of bit errors", "A worked session",
)  # fmt: skip
ASIDES = (
    "Since the {a} is shared by both issue ports, a second one in the same cycle waits for cycle {n} of the next frame.",
    "What was said of the {a} in the guide of the Morrow 2 still holds, but its depth is now {n} entries.",
    "A programmer who comes from machines with scalar registers will miss the {a}; here it is part of the frame.",
    "The engine takes about {n} cycles for a tile of 64 rows, of which most are spent in the {a}.",
    "Nothing of this is visible in the trace buffer unless bit {n} of its filter is set by the host beforehand.",
    "If the board runs hotter than {n} degrees above ambient, the {a} is clocked at half its rate until it has cooled.",
    "The assembler checks the number of operands, but not whether the {a} is free; the engine stalls in that case.",
    "Breakpoints fire before it, and a single step shows the {a} as it was before the frame began.",
    "For denormal numbers the {a} is slower by {n} cycles, unless they are flushed by the mode word.",
    "Our own libraries use it in {n} places, mostly where an earlier version had a loop around the {a}.",
    "In the listing it takes one word of {n} bits, the last of which is the parity of the others.",
    "It may not be the last in a frame that the host ends, since the {a} is saved one cycle too early then.",
    "Results agree with those of the reference model in every bit, as {n} million random operands have shown.",
    "Early boards had the {a} wired to another port, which is why old listings show it in another column.",
)
PARTS = (
    "tile port",
    "frame register",
    "lane crossbar",
    "operand queue",
    "mode word",
    "row counter",
    "near memory",
    "issue slot",
)


def write_manual() -> str:
    """The whole guide, the same text on each call."""
    drawn = random.Random(11)
    title = "Morrow Tile Engine: A Guide for Programmers"
    parts = [f"{title}\n{'=' * len(title)}\n\nThis guide is for those who write programs by hand or by machine.\n"]
    for number, subject in enumerate(SUBJECTS, 1):
        parts.append(
            f"{subject}\n{'-' * len(subject)}\n\nChapter {number} of the first part. {_ramble(drawn, 14)}\n\n{_ramble(drawn, 14)}\n"
        )
    for number, (chapter, topics) in enumerate(TOPICS.items(), 1):
        parts.append(f"{number} {chapter}\n\n{_ramble(drawn, 3)}\n")
        for place, (subject, name, operands, says) in enumerate(topics, 1):
            parts.append(
                f"{number}.{place} {subject}\n\n{says}. This is done by {name}, which is written\n\n    {name} {operands}\n\n"
                f"{_ramble(drawn, 6)}\n\n{_ramble(drawn, 6)}\n"
            )
    for number, (name, (title, cause, remedy)) in enumerate(TRAPS.items(), 1):
        heading = f"{len(TOPICS) + 1}.{number} Trap {name}, {title}"
        extra = (
            " The column of a fold is drained by t.drain and its tile, as in `t.drain a1`, before anybody reads it."
            if name == "0x2C"
            else ""
        )
        parts.append(f"{heading}\n\nIt is raised where {cause}. Look at {remedy}.{extra} {_ramble(drawn, 5)}\n")
    return "\n".join(parts)


def _ramble(drawn: random.Random, count: int) -> str:
    return " ".join(
        aside.format(a=drawn.choice(PARTS), n=drawn.randrange(2, 99)) for aside in drawn.sample(ASIDES, count)
    )
