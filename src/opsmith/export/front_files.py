"""What a library says of the figures by which its programs were chosen: a table's rows, and a file for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from opsmith.export.choice import ProgramChoice, SizedChoice
from opsmith.export.solved import SolvedOperator
from opsmith.records import Candidate
from opsmith.report.fronts import write_front_json, write_value
from opsmith.report.speeds import write_sizes
from opsmith.report.tables import NOTHING

FRONTS = "fronts.json"
NEAREST = "the sum over sizes of the squared logarithm of (size of the call / measured size) is least"


def describe_front(operator: SolvedOperator) -> dict[str, Any]:
    """A row of the README's table."""
    choice = operator.choice
    assert choice is not None
    front = choice.front
    own = front.own or (None,) * len(front.names)
    return {
        "function": operator.name,
        "objective": choice.objective,
        "names": front.names,
        "values": [
            (write_value(objective, value), NOTHING if beside is None else write_value(objective, beside))
            for objective, value, beside in zip(front.objectives, choice.point.figures, own, strict=True)
        ],
        "programs": len(front.programs),
        "points": len(front.front),
        "by_size": [_describe_places(sized) for sized in _list_sized(operator, choice)],
    }


def write_front_file(operators: Sequence[SolvedOperator]) -> str:
    """The fronts of all operators, what was taken of each, and by which rule programs are chosen at a call."""
    rows = {
        operator.name: {
            "objective": choice.objective,
            "program": choice.point.program,
            **write_front_json(choice.front),
            "by_size": [
                {"program": Candidate(sized.source).id, "sizes": sized.sizes} for sized in _list_sized(operator, choice)
            ],
        }
        for operator in operators
        if (choice := operator.choice) is not None
    }
    return json.dumps({"version": 1, "nearest": NEAREST, "operators": rows}, indent=1) + "\n"


def _list_sized(operator: SolvedOperator, choice: ProgramChoice) -> Sequence[SizedChoice]:
    """As far as they are in the library."""
    return choice.by_size if operator.as_solved.by_size else ()


def _describe_places(sized: SizedChoice) -> str:
    places = (f"{name} ({write_sizes(sizes)})" for name, sizes in sized.sizes.items())
    return f"{Candidate(sized.source).id[:8]} at {', '.join(places)}"
