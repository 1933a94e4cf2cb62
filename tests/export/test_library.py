"""A library: installed and tested where there is no Opsmith, the same from the same run, and never over others' files."""

import json
import re
from importlib import metadata
from pathlib import Path

import pytest
from export.installs import install_package, link_packages, run_python
from export.stores import RUN, Said, info, oracles, write_run

from opsmith.errors import UsageError
from opsmith.export.folder import write_folder
from opsmith.export.library import export_library, package_name, read_licence
from opsmith.export.pages import escape_cell
from opsmith.export.solved import describe_facts, name_functions
from opsmith.judging.judge import IMPORT
from opsmith.records import Experience, Task
from opsmith.store.rows import experience_rows
from opsmith.suites import load_tasks

TASKS = load_tasks(["bmm_0", "expert_0", "norm_0"])
SOLVED = {task.id: [Said("return E0\n", False), Said(task.impl, True)] for task in TASKS[:2]}


@pytest.fixture
def store(tmp_path):
    with write_run(tmp_path / "runs", SOLVED, TASKS) as made:
        yield made


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> Path:
    """A folder of packages: torch, pytest and what they need."""
    return link_packages(tmp_path_factory.mktemp("bare") / "packages", "torch", "pytest")


def test_an_installed_library_passes_its_tests_where_there_is_torch_alone(store, pool, tmp_path, bare):
    folder = tmp_path / "my-ops"
    found = export_library(store, "model", folder, None, pool)
    assert ([operator.name for operator in found.operators], [task.id for task in found.missing]) == (
        ["bmm_0", "expert_0"],
        ["norm_0"],
    )
    assert install_package(folder, bare).returncode == 0

    absent = run_python(
        "-c",
        "import importlib.util as u; print([n for n in ('opsmith', 'numpy', 'yaml', 'my_ops') if u.find_spec(n)])",
        cwd=tmp_path,
        packages=bare,
    )
    assert absent.stdout.strip() == "['my_ops']"
    code = "import torch, my_ops; print(my_ops.bmm_0(torch.ones(2, 3, 4), torch.ones(2, 3, 5)).sum().item()); print(my_ops.expert_0.__doc__)"
    used = run_python("-c", code, cwd=tmp_path, packages=bare)
    assert used.stdout.startswith("120.0"), used.stderr
    for words in (
        "Wg: (D,) float32",
        "gelu(x @ input_data['W'])",
        "some-model",
        "round 0",
        "0.25",
        "verifier old-1, 3 trials",
        "passed: verifier step-",
    ):
        assert words in used.stdout
    tested = run_python("-m", "pytest", "-p", "no:cacheprovider", str(folder), cwd=tmp_path, packages=bare)
    assert tested.returncode == 0, tested.stdout
    assert re.search(r"\b5\d passed", tested.stdout), tested.stdout

    again = export_library(store, RUN, folder, "my_ops", pool)  # over what pip has left there
    assert again.name == "my_ops"
    module = folder / "my_ops" / "operators" / "bmm_0.py"
    module.write_text(module.read_text().replace("state[0] + input[0]", "state[0] - input[0]"))
    (bare / "my_ops" / "operators" / "bmm_0.py").write_text(module.read_text())
    spoiled = run_python(
        "-m", "pytest", "-p", "no:cacheprovider", str(folder), "-x", "-k", "bmm_0", cwd=tmp_path, packages=bare
    )
    assert spoiled.returncode == 1
    assert "FAILED" in spoiled.stdout


def test_the_same_run_gives_the_same_bytes(store, pool, tmp_path):
    export_library(store, RUN, tmp_path / "a", "ops", pool)
    export_library(store, RUN, tmp_path / "b", "ops", pool)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def test_the_manifest_says_what_is_there_and_what_is_not(store, pool, tmp_path):
    export_library(store, RUN, tmp_path / "ops", None, pool)
    told = json.loads((tmp_path / "ops" / "manifest.json").read_text())
    assert (told["format"], told["version"], told["run"]["model"]) == ("opsmith library", 2, "some-model")
    assert [entry["task"] for entry in told["missing"]] == ["norm_0"]
    assert "/home/somebody" not in json.dumps(told)
    first = told["operators"][0]
    assert (first["function"], first["origin"]["round"], first["origin"]["success_rate"]) == ("bmm_0", 0, 0.25)
    assert (first["origin"]["samples"], first["origin"]["right"]) == (2, 1)
    assert first["origin"]["usage"]["cost_usd"] == 0.01
    assert (first["verdict_then"]["verifier"], first["verdict_now"]["outcome"]) == ("old-1", "passed")
    assert first["verdict_now"]["trials"] > 40
    assert set(told["files"]) == set(files_of(tmp_path / "ops")) - {"manifest.json"}


def test_an_operator_that_is_wrong_by_todays_verifier_stays_out(pool, tmp_path):
    said = {"bmm_0": [Said("return E0\n", True)], "expert_0": [Said(TASKS[1].impl, True)]}
    with write_run(tmp_path / "runs", said, TASKS) as store:
        found = export_library(store, RUN, tmp_path / "ops", None, pool)
    assert [operator.name for operator in found.operators] == ["expert_0"]
    assert [operator.task.id for operator in found.refused] == ["bmm_0"]
    told = json.loads((tmp_path / "ops" / "manifest.json").read_text())
    assert [entry["task"] for entry in told["missing"]] == ["norm_0"]
    (refused,) = told["refused"]
    assert refused["task"] == "bmm_0"
    assert refused["verdict_now"]["outcome"] == "refused"
    assert "expected: S0: fp32 [D, N, M]" in refused["message"]
    assert not (tmp_path / "ops" / "ops" / "operators" / "bmm_0.py").exists()
    assert "bmm\\_0" in (tmp_path / "ops" / "README.md").read_text().partition("left out")[2]


def test_a_run_without_a_right_operator_gives_no_library(pool, tmp_path):
    wrong = {"bmm_0": [Said("return E0\n", True)]}
    no_right = pytest.raises(UsageError, match="no operator passes today's verifier")
    with write_run(tmp_path / "a", wrong, TASKS) as store, no_right:
        export_library(store, RUN, tmp_path / "ops", None, pool)
    with write_run(tmp_path / "b", {}, TASKS) as store, pytest.raises(UsageError, match="it has solved no task"):
        export_library(store, RUN, tmp_path / "ops", None, pool)
    assert not (tmp_path / "ops").exists()


def test_what_a_run_was_given_is_in_the_library_and_says_where_it_comes_from(pool, tmp_path):
    task = TASKS[0]
    with write_run(tmp_path / "runs", {}, TASKS[1:]) as store:
        store.put(experience_rows(RUN, Experience(task, task.impl, 1.0, -1, IMPORT), None, False)).result()
        (operator,) = export_library(store, RUN, tmp_path / "ops", None, pool).operators
    assert describe_facts(operator)["model"] == "none: it was imported"
    assert (operator.origin.round, operator.origin.verdict) == (None, None)
    assert "| given |" in (tmp_path / "ops" / "README.md").read_text()


def test_a_program_sampler_is_never_called_a_language_model(pool, tmp_path):
    with write_run(tmp_path / "runs", SOLVED, TASKS, info(model="embedded", is_language_model=False)) as store:
        found = export_library(store, RUN, tmp_path / "ops", None, pool)
    assert describe_facts(found.operators[0])["model"] == "embedded, which is a program sampler, not a language model"
    assert "not a language model" in (tmp_path / "ops" / "README.md").read_text()
    assert "not a language model" in (tmp_path / "ops" / "ops" / "operators" / "bmm_0.py").read_text()


# -- where it is written, and what it is called


def refusal(store, pool, folder: Path) -> str:
    before = files_of(folder) if folder.is_dir() else folder.read_bytes()
    with pytest.raises(UsageError) as raised:
        export_library(store, RUN, folder, "ops", pool)
    assert (files_of(folder) if folder.is_dir() else folder.read_bytes()) == before
    return str(raised.value)


def test_nothing_of_others_is_replaced(store, pool, tmp_path):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    export_library(store, RUN, foreign, "ops", pool)  # empty
    (foreign / "README.md").write_text("my own words")
    assert "README.md was changed since its export" in refusal(store, pool, foreign)
    (foreign / "README.md").unlink()
    export_library(store, RUN, foreign, "ops", pool)
    (foreign / "notes.txt").write_text("mine")
    assert "notes.txt was added since its export" in refusal(store, pool, foreign)
    other = tmp_path / "other"
    other.mkdir()
    (other / "manifest.json").write_text('{"format": "another"}')
    assert "it is not empty, and no export of this kind" in refusal(store, pool, other)
    (tmp_path / "file").write_text("x")
    assert "given a file" in refusal(store, pool, tmp_path / "file")


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    def fail(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_folder(tmp_path / "made", fail)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["torch", "json", "class", "tests", "Ops", "my ops", "1st", "opsmith", "aten", "", "x" * 61, "../x"]
)
def test_a_package_has_a_name_that_python_and_pip_can_use(store, pool, tmp_path, name):
    with pytest.raises(UsageError, match="expected a name for a Python package"):
        export_library(store, RUN, tmp_path / "new", name, pool)
    assert not (tmp_path / "new").exists()


def test_a_package_is_called_like_its_folder(tmp_path):
    assert package_name(tmp_path / "My-fine.ops") == "my_fine_ops"
    with pytest.raises(UsageError, match="try: --name"):
        package_name(tmp_path / "2025")


def test_functions_have_different_names_whatever_tasks_are_called():
    ids = ["attn_0", "Attn_0", "attn-0", "attn_0_2", "../x", "class", "", "9", "日本", "import os; os.abort()"]
    names = name_functions(ids)
    assert len(set(names)) == len(ids)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in names)
    assert name_functions(["class", "9"]) == ["class_", "op_9"]


def test_a_hostile_task_id_is_only_text(pool, tmp_path):
    evil = Task('x"""\nimport os\nos.abort()\n\u202e|<script>`', "step", TASKS[0].text)
    with write_run(tmp_path / "runs", {evil.id: [Said(TASKS[0].impl, True)]}, [evil]) as store:
        (operator,) = export_library(store, RUN, tmp_path / "ops", None, pool).operators
    assert operator.name == "x_import_os_os_abort_script"
    text = (tmp_path / "ops" / "ops" / "operators" / f"{operator.name}.py").read_text()
    compile(text, "module", "exec")
    assert "\nimport os" not in text
    readme = (tmp_path / "ops" / "README.md").read_text()
    assert "<script>" not in readme
    assert "\u202e" not in readme
    assert escape_cell("a|b\n") == "a\\|b\ufffd"


def test_a_language_that_cannot_be_packaged_says_so(pool, tmp_path):
    from tiny_target import register, tiny_task

    register()
    task = tiny_task("sum_0", "x y +")
    no_package = pytest.raises(
        UsageError, match="there is no library of programs of the target tiny; try: --dataset DIR"
    )
    with write_run(tmp_path / "runs", oracles([task]), [task], info("tiny")) as store, no_package:
        export_library(store, RUN, tmp_path / "ops", None, pool)


def test_the_licence_is_there_beside_what_an_editable_installation_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pip install -e` leaves `src/opsmith.egg-info`, a record of the package without texts of licences."""
    record = tmp_path / "opsmith.egg-info"
    record.mkdir()
    (record / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: opsmith\nVersion: 0.1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert metadata.distribution("opsmith").read_text("licenses/LICENSE") is None, "the folder comes first"
    assert "Apache License" in read_licence()
