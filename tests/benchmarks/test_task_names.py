"""Which task a name means."""

import pytest

from opsmith import benchmarks
from opsmith.errors import TaskError, UsageError


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """Two bundled suites of empty files."""
    for suite, ids in {"step26": ["attn_0", "bmm_0", "bmm_1"], "step_extra": ["tuple_0"]}.items():
        (tmp_path / suite).mkdir()
        for task_id in ids:
            (tmp_path / suite / f"{task_id}.yaml").write_text("text: x\n")
    monkeypatch.setattr(benchmarks, "__file__", str(tmp_path / "__init__.py"))
    return tmp_path


def ids(*names):
    return [path.stem for path in benchmarks.resolve(names)]


def test_no_name_means_the_tasks_of_the_paper(suite):
    assert ids() == ["attn_0", "bmm_0", "bmm_1"]


def test_a_name_is_an_id_a_suite_a_file_or_a_folder(suite):
    assert ids("bmm_1", "tuple_0") == ["bmm_1", "tuple_0"]
    assert ids("step_extra") == ["tuple_0"]
    assert ids(str(suite / "step26")) == ["attn_0", "bmm_0", "bmm_1"]
    assert ids(str(suite / "step_extra" / "tuple_0.yaml"), "tuple_0") == ["tuple_0"]


def test_an_unknown_id_lists_near_matches(suite):
    with pytest.raises(UsageError, match="near matches: bmm_1, bmm_0"):
        ids("bmn_1")
    with pytest.raises(UsageError, match="opsmith tasks"):
        ids("zzz")
    with pytest.raises(UsageError, match="no such file"):
        ids("zzz.yaml")
    (suite / "empty").mkdir()
    with pytest.raises(UsageError, match=r"holds no \.yaml"):
        ids(str(suite / "empty"))


def test_two_files_of_one_id_cannot_be_told_apart(suite):
    (suite / "bmm_0.yaml").write_text("text: another\n")
    with pytest.raises(UsageError, match="two files have this id"):
        ids("bmm_0", str(suite / "bmm_0.yaml"))


@pytest.mark.parametrize("line", ["target: tiny_target:TINY", "target: 'tiny_target:TINY'  # mine"])
def test_a_file_states_its_target(suite, line):
    path = suite / "mine.yaml"
    path.write_text(f"# first\n{line}\ninputs: {{x: [1, 2]}}\nwant: [2, 4]\n")
    task = benchmarks.read_task_file(path)
    assert (task.id, task.target, task.path) == ("mine", "tiny_target:TINY", str(path))
    path.write_text("# target: tiny\ninputs: {}\n  target: tiny\n")  # no line of its own: STeP
    with pytest.raises(TaskError, match=r"mine\.yaml:3"):
        benchmarks.read_task_file(path)


def test_a_file_that_cannot_be_read_is_an_error_of_its_own(suite):
    (suite / "bad.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(TaskError, match=r"bad\.yaml: cannot be read"):
        benchmarks.read_task_file(suite / "bad.yaml")
