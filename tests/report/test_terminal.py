"""The tables that people see most, as a terminal of 80 columns and one of 120 shows them (`tests/golden`)."""

import io
import re

import pytest
from optimised_store import add_optimisation, write_functional

from opsmith.report.closing import print_run
from opsmith.report.fitting import PlainConsole
from opsmith.report.tables import runs_table
from opsmith.results.result import result_of
from opsmith.store import Store

VARYING = (  # what differs from one day, machine or process to the next
    (r"-\w{10}\b", "-" + "x" * 10),
    (r"\b\d\d-\d\d \d\d:\d\d\b", "MM-DD hh:mm"),
    (r"\b\d+\.\d s\b", "0.0 s"),
    (r"\b[0-9a-f]{12}\b", "0" * 12),
)


@pytest.fixture
def shown():
    """The console of a terminal so wide, and what it showed, without what varies."""

    def open_terminal(width):
        console = PlainConsole(width=width, force_terminal=True, color_system=None, legacy_windows=False)
        console.file = io.StringIO()
        return console

    return open_terminal


def read(console):
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= console.width
    for pattern, place in VARYING:
        text = re.sub(pattern, place, text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


@pytest.mark.parametrize("width", [80, 120])
def test_a_run_and_the_list_of_runs(store, runs, shown, golden, width):
    console = shown(width)
    print_run(console, store, result_of(store, runs[0]))
    console.print(runs_table(store.list_runs(), gains={runs[0]: "1.750 over 2 tasks"}))
    golden(f"terminal_run_{width}.txt", read(console))


@pytest.mark.parametrize("width", [80, 120])
def test_what_optimisation_gained(shown, golden, tmp_path, width):
    run = write_functional(tmp_path / "opsmith.sqlite")
    console = shown(width)
    with Store.open(tmp_path / "opsmith.sqlite") as store:
        add_optimisation(store, run)
        print_run(console, store, result_of(store, run))
    golden(f"terminal_optimised_{width}.txt", read(console))
