"""A library that lives: what is added, what is replaced, what is refused and said; and what judging it again shows."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
from export.stores import RUN, Said, write_run

from opsmith.cli.living import narrow_to_library
from opsmith.errors import UsageError
from opsmith.export.folder import HISTORY, hold_folder
from opsmith.export.library import export_library
from opsmith.export.library_check import check_library, list_reusable
from opsmith.export.living import LibraryTools, UpdatedLibrary, read_living, update_library
from opsmith.export.solved import SolvedOperator, operators_of
from opsmith.measuring.loop import TimingRoom
from opsmith.remote.filling import fill_order
from opsmith.suites import load_tasks

BMM, NORM = load_tasks(["bmm_0", "norm_0"])


@pytest.fixture
def tools(pool) -> Iterator[LibraryTools]:
    with TimingRoom() as room:
        yield LibraryTools(pool, partial(fill_order, pool=pool, room=room))


@pytest.fixture
def offered(tmp_path, pool) -> list[SolvedOperator]:
    """Of a run that solved both tasks."""
    said = {task.id: [Said(task.impl, True)] for task in (BMM, NORM)}
    with write_run(tmp_path / "both", said, [BMM, NORM]) as store:
        return operators_of(store, RUN, pool)


@pytest.fixture
def library(tmp_path, pool) -> Path:
    """With one of them."""
    with write_run(tmp_path / "one", {"bmm_0": [Said(BMM.impl, True)]}, [BMM]) as store:
        export_library(store, "model", tmp_path / "ops", None, pool)
    return tmp_path / "ops"


def update(folder: Path, offered: list[SolvedOperator], tools: LibraryTools, **options: bool) -> UpdatedLibrary:
    return update_library(folder, offered, tools, lambda _: None, **options)


def test_what_is_new_is_added_and_the_old_manifest_stays(library, offered, tools):
    before = (library / "manifest.json").read_bytes()
    result = update(library, offered, tools)
    assert [(row.task, row.what) for row in result.updates] == [("bmm_0", "stays"), ("norm_0", "added")]
    read = read_living(library)
    assert [operator.name for operator in read.operators] == ["bmm_0", "norm_0"]
    assert read.operators[1].figures["cycles"] > 0
    assert (library / HISTORY / "0001-manifest.json").read_bytes() == before
    assert not update(library, offered, tools).is_changed
    assert len(list((library / HISTORY).iterdir())) == 1


def test_what_is_wrong_or_another_problem_is_refused_and_nothing_is_written(library, offered, tools, pool):
    before = (library / "manifest.json").read_bytes()
    other = replace(offered[0], task=replace(NORM, id="bmm_0"))
    wrong = replace(offered[1], source="return E0\n", verdict=pool.verify(NORM, "return E0\n"))
    result = update(library, [other, wrong], tools)
    assert [row.what for row in result.updates] == ["refused", "refused"]
    assert "another problem under that name: given" in result.updates[0].why
    assert "not right today" in result.updates[1].why
    assert (library / "manifest.json").read_bytes() == before


def test_a_run_for_a_library_asks_for_what_it_lacks(library, capsys):
    assert narrow_to_library(library, [BMM, NORM], False) == ((NORM,), ("norm_0",))
    assert "norm_0 (missing)" in capsys.readouterr().err
    assert narrow_to_library(library, [BMM], False) == ((), ())
    with pytest.raises(UsageError, match="task bmm_0: given problem"):
        narrow_to_library(library, [replace(NORM, id="bmm_0")], False)


def test_the_second_writer_says_so_and_a_changed_library_is_left_alone(library, offered, tools):
    with hold_folder(library, None), pytest.raises(UsageError, match="somebody else writes it"):
        update(library, offered, tools, waits=False)
    (library / "ops" / "operators" / "bmm_0.py").write_text("")
    with pytest.raises(UsageError, match="was changed since its export"):
        update(library, offered, tools)


def test_judging_again_says_what_broke_and_what_got_slower(library, offered, tools, tmp_path):
    """A cost model that says half as much again for one operator, and a program that is not right any more."""
    update(library, offered, tools)
    read = read_living(library)
    check = partial(check_library, tools=tools, baseline=tmp_path / "b.json", is_accepted=False, tell=lambda _: None)
    first = check(read)
    assert ([each.state for each in first.checks], first.has_baseline, first.exit_code) == (["right"] * 2, False, 0)

    def fill_dearer(order):
        for report in tools.fill(order):
            time = report.measurement.time
            assert time is not None
            yield replace(report, measurement=replace(report.measurement, time=time.scale_by(1.5), flags="tools 2"))

    broken = replace(read.operators[1], source="return E0\n")
    result = check(replace(read, operators=[read.operators[0], broken]), tools=LibraryTools(tools.pool, fill_dearer))
    assert ([each.state for each in result.checks], result.exit_code) == (["slower", "broken"], 1)
    assert "slower by a factor of 1.500" in "\n".join(result.list_lines())
    result.write_junit(tmp_path / "junit.xml")
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "2", "1")


def test_verdicts_of_today_are_not_judged_again_and_earlier_ones_are_named_where_nothing_changes(
    library, offered, tools, capsys
):
    read = read_living(library)
    assert list_reusable(read) == ["bmm_0"]
    assert list_reusable(replace(read, operators=[replace(read.operators[0], source="return E0\n")])) == []
    narrow_to_library(library, [BMM], False)
    assert "not judged again" in capsys.readouterr().err
    assert update(library, offered[:1], tools).explain_outdated() == ""
    manifest = library / "manifest.json"
    manifest.write_text(manifest.read_text().replace(read.operators[0].record["verdict_now"]["verifier"], "earlier"))
    result = update(library, offered[:1], tools)
    assert not result.is_changed
    assert "judged with earlier tools than today's: bmm_0" in result.explain_outdated()
    assert list_reusable(read_living(library)) == []
