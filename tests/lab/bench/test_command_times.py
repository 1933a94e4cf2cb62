"""Commands are timed as a user starts them, beside a bare Python; one that fails has no time."""

import pytest

from opsmith.errors import OpsmithError
from opsmith_lab.bench.commands import time_commands


def test_a_command_has_a_time_and_its_distance_to_a_bare_python_beside_it() -> None:
    told: list[str] = []
    (row,) = time_commands(1, told.append, [("--help",)], code="import time; time.sleep(0)")
    assert row.command == "--help"
    assert 0 < row.low <= row.median <= row.high
    assert row.over_low <= row.over <= row.over_high < row.median
    assert 0 < row.over_cpu < row.cpu
    assert told == ["opsmith --help: 0 of 1", "opsmith --help: 1 of 1"]
    with pytest.raises(OpsmithError, match=r"bench commands: -m opsmith show nothing ended with 2: .*no such run"):
        time_commands(1, told.append, [("show", "nothing")], code="")
