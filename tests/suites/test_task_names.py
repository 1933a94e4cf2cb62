"""Which task a name means."""

import subprocess
import sys

import pytest

from opsmith import suites
from opsmith.errors import TaskError, UsageError


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """Two bundled suites of empty files."""
    for suite, ids in {"step26": ["attn_0", "bmm_0", "bmm_1"], "step_extra": ["tuple_0"]}.items():
        (tmp_path / suite).mkdir()
        for task_id in ids:
            (tmp_path / suite / f"{task_id}.yaml").write_text("text: x\n")
    monkeypatch.setattr(suites, "__file__", str(tmp_path / "__init__.py"))
    return tmp_path


def ids(*names):
    return [path.stem for path in suites.resolve_names(names)]


def test_no_name_means_the_tasks_of_the_paper(suite):
    assert ids() == ["attn_0", "bmm_0", "bmm_1"]


def test_a_name_is_an_id_a_suite_a_file_or_a_folder(suite):
    assert ids("bmm_1", "tuple_0") == ["bmm_1", "tuple_0"]
    assert ids("step26/bmm_1", "step_extra/tuple_0") == ["bmm_1", "tuple_0"]
    assert ids("step_extra") == ["tuple_0"]
    assert ids(str(suite / "step26")) == ["attn_0", "bmm_0", "bmm_1"]
    assert ids(str(suite / "step_extra" / "tuple_0.yaml"), "tuple_0") == ["tuple_0"]


def test_an_unknown_id_lists_near_matches(suite):
    with pytest.raises(UsageError, match="near matches: bmm_1, bmm_0"):
        ids("bmn_1")
    with pytest.raises(UsageError, match="opsmith tasks"):
        ids("zzz")
    with pytest.raises(UsageError, match="no such id"):
        ids("step_extra/bmm_1")
    with pytest.raises(UsageError, match="does not exist"):
        ids("zzz.yaml")
    (suite / "empty").mkdir()
    with pytest.raises(UsageError, match=r"holds no \.yaml"):
        ids(str(suite / "empty"))


def test_two_files_of_one_id_cannot_be_told_apart(suite):
    (suite / "bmm_0.yaml").write_text("text: another\n")
    with pytest.raises(
        UsageError, match=r"two files have this id: .* a run and its store know a task by its file's name"
    ):
        ids("bmm_0", str(suite / "bmm_0.yaml"))


def test_files_of_one_id_are_found_each_once_and_named_by_their_paths(suite):
    (suite / "more").mkdir()
    for folder in (suite, suite / "more"):
        (folder / "x_0.yaml").write_text("text: x\n")
    (suite / "more" / "y_0.yaml").write_text("text: y\n")
    (suite / "linked").symlink_to(suite / "more")
    files = suites.find_files([str(suite / "x_0.yaml"), str(suite / "more"), str(suite / "linked" / "x_0.yaml")])
    assert suites.name_files(files) == [str(suite / "x_0.yaml"), str(suite / "more" / "x_0.yaml"), "y_0"]


@pytest.mark.parametrize("line", ["target: tiny_target:TINY", "target: 'tiny_target:TINY'  # mine"])
def test_a_file_states_its_target(suite, line):
    path = suite / "mine.yaml"
    path.write_text(f"# first\n{line}\ninputs: {{x: [1, 2]}}\nwant: [2, 4]\n")
    task = suites.read_task_file(path)
    assert (task.id, task.target, task.path) == ("mine", "tiny_target:TINY", str(path))
    path.write_text("# target: tiny\ninputs: {}\n  target: tiny\n")  # no line of its own: STeP
    with pytest.raises(TaskError, match=r"mine\.yaml:3"):
        suites.read_task_file(path)


def test_a_file_that_cannot_be_read_is_an_error_of_its_own(suite):
    (suite / "bad.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(TaskError, match=r"bad\.yaml: cannot be read"):
        suites.read_task_file(suite / "bad.yaml")


@pytest.mark.parametrize(
    ("ask", "unused"),
    [
        ("load_tasks(['gemm_0'])", ("opsmith.targets.c", "opsmith.targets.native", "tree_sitter")),
        ("load_tasks(['softmax'], 'c')", ("opsmith.targets.step",)),
        ("[read_task_file(path) for path in find_files(['kernels'])]", ("opsmith.targets.step", "opsmith.targets.c")),
    ],
)
def test_no_language_is_loaded_but_the_one_that_is_asked_for(ask, unused):
    code = f"import sys; from opsmith.suites import *; from opsmith.suites import find_files, read_task_file; {ask}"
    shown = subprocess.run(
        [sys.executable, "-c", f"{code}; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    loaded = shown.stdout.split()
    assert [name for name in loaded if name.startswith((*unused, "torch"))] == []
