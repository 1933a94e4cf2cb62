"""What turns bytes into behaviour (pickles, `exec`, shells, unsafe YAML) occurs in the sources where listed, and why."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = (ROOT / "src" / "opsmith", ROOT / "src" / "opsmith_lab")

PICKLES = {"pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "jsonpickle"}
PROCESSES = {"multiprocessing", "concurrent.futures.ProcessPoolExecutor", "runpy"}
CALLS = {
    *("eval", "exec", "compile", "__import__", "import_module", "importlib.import_module"),
    *("os.system", "os.popen", "asyncio.create_subprocess_shell", "runpy.run_path"),
    *("yaml.unsafe_load", "yaml.full_load", "yaml.unsafe_load_all", "yaml.full_load_all", "yaml.UnsafeLoader"),
}
SAFE_LOADERS = ("SafeLoader", "CSafeLoader")

ALLOWED = {  # (file, what): why it is no way in
    ("problems/authored.py", "exec"): "a task's author's code; in confined worker processes only",
    ("problems/authored.py", "eval"): "the same",
    ("problems/authored.py", "compile"): "the same; compiling runs nothing",
    ("problems/reference.py", "exec"): "the same",
    ("targets/step/execution/bodies.py", "compile"): "the same",
    ("targets/step/planning/observation.py", "exec"): "statements of an author's reference; in confined workers only",
    ("targets/step/planning/observation.py", "eval"): "the same",
    ("targets/step/planning/observation.py", "compile"): "the same; compiling runs nothing",
    ("__init__.py", "import_module"): "names of a table of ours",
    ("bridges/trackers.py", "import_module"): "a name of ours",
    ("by_name.py", "import_module"): "names of a table of ours",
    ("models/sdk.py", "import_module"): "names of ours",
    ("remote/runner.py", "import_module"): "the same, in a packed folder, whose programs run as well",
    ("remote/torch_beside.py", "exec"): "a packed problem's reference, where its user runs the packed folder",
    ("remote/torch_beside.py", "compile"): "the same",
    ("targets/lookup.py", "import_module"): "`target: module:attribute`: what the user has installed, not the stdlib",
    ("export/torch_harness.py", "exec"): "files of an exported folder, where its user runs the harness",
    ("export/torch_harness.py", "compile"): "the same",
    ("measuring/torch_process.py", "import_module"): "a name of ours",
    ("measuring/torch_process.py", "exec"): "a task's author's reference; in a process of its own, see its first lines",
    ("targets/triton/triton_process.py", "compile"): "a program that `source` let pass; in a confined fork only",
    ("targets/triton/triton_process.py", "exec"): "the same",
    ("targets/triton/interpreting.py", "compile"): "the same, in a candidate's confined process",
    ("targets/triton/interpreting.py", "exec"): "the same",
    ("targets/triton/semantics.py", "exec"): "a line of ours, whose function Triton's interpreter looks at",
    ("targets/triton/library_programs.py", "exec_module"): "programs of a library, where its user calls them",
    ("imports/kernelbench/sampling.py", "exec"): "a foreign module; in confined worker processes only",
    ("imports/kernelbench/sampling.py", "compile"): "the same",
    ("scaffold/functions.py", "importlib.import_module"): "the module that the user names on the command line",
    ("scaffold/functions.py", "exec_module"): "the file that the user names on the command line",
    ("step/testing.py", "runpy"): "in a generated script: the user's own test runs the user's own file",
    ("step/testing.py", "runpy.run_path"): "the same",
    (
        "targets/step/library/translation.py",
        "exec",
    ): "an operator's text of ours around an author's fns; in workers only",
    ("targets/step/library/translation.py", "compile"): "the same",
    ("study/searching.py", "multiprocessing"): "searches of ours in processes of this machine, as of a benchmark",
    ("study/searching.py", "concurrent.futures.ProcessPoolExecutor"): "the same",
    ("bench/growth/measure.py", "multiprocessing"): "a benchmark's child process of ours, on this machine",
    ("bench/growth/measure.py", "concurrent.futures.ProcessPoolExecutor"): "the same",
}


def dotted(node: ast.expr) -> str:
    """`a.b.c` as it stands there; "" for what is no name."""
    if isinstance(node, ast.Attribute):
        return f"{inner}.{node.attr}" if (inner := dotted(node.value)) else ""
    return node.id if isinstance(node, ast.Name) else ""


def imports(node: ast.AST) -> Iterator[str]:
    names = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module:
        names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    for name in names:
        if name in PROCESSES or name.partition(".")[0] in PICKLES | PROCESSES:
            yield name if name in PROCESSES else name.partition(".")[0]


def calls(node: ast.AST) -> Iterator[str]:
    if not isinstance(node, ast.Call):
        return
    name = dotted(node.func)
    words = {word.arg: word.value for word in node.keywords}
    if name in CALLS:
        yield name
    if name.endswith("torch.load") and not _is(words.get("weights_only"), True):
        yield "torch.load"
    if name in {"numpy.load", "np.load"} and not _is(words.get("allow_pickle", ast.Constant(False)), False):
        yield "numpy.load"
    if name in {"yaml.load", "yaml.load_all", "yaml.parse", "yaml.compose"} and not _loads_safely(node, words):
        yield name
    if "shell" in words and not _is(words["shell"], False):
        yield "a shell"
    for ending in ("read_pickle", "exec_module"):
        if name.endswith(ending):
            yield ending


def _is(node: ast.expr | None, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _loads_safely(node: ast.Call, words: dict[str | None, ast.expr]) -> bool:
    """The loader is a safe one, or a constant `_LOADER` of the module, which `test_loaders_are_safe` looks at."""
    loader = words.get("Loader") or (node.args[1] if len(node.args) > 1 else None)
    if loader is None:
        return False
    names = _loaders_in(loader)
    return dotted(loader) == "_LOADER" or (bool(names) and set(names) <= set(SAFE_LOADERS))


def _loaders_in(node: ast.AST) -> list[str]:
    """Every name or text in an expression that ends in Loader."""
    names = [child.attr for child in ast.walk(node) if isinstance(child, ast.Attribute)]
    names += [child.id for child in ast.walk(node) if isinstance(child, ast.Name)]
    names += [child.value for child in ast.walk(node) if isinstance(child, ast.Constant) and type(child.value) is str]
    return [name for name in names if name.endswith("Loader")]


def found_in(text: str) -> set[str]:
    return {what for node in ast.walk(ast.parse(text)) for what in (*imports(node), *calls(node))}


def test_the_sources_do_it_only_where_listed() -> None:
    found = {
        (path.relative_to(package).as_posix(), what)
        for package in SOURCES
        for path in package.rglob("*.py")
        for what in found_in(path.read_text(encoding="utf-8"))
    }
    assert found - ALLOWED.keys() == set(), "new: list it with its reason, or do without"
    assert {place for place in ALLOWED.keys() - found if any((own / place[0]).exists() for own in SOURCES)} == set(), (
        "gone: take it off"
    )


def test_loaders_are_safe() -> None:
    """Each `_LOADER` of a module is one of PyYAML's safe ones; so is every loader that the tests use."""
    for path in [path for folder in (*SOURCES, ROOT / "tests") for path in folder.rglob("*.py")]:
        if path == Path(__file__) or "fixtures" in path.parts:  # foreign files, which nothing imports
            continue
        if "yaml" not in (text := path.read_text(encoding="utf-8")).lower() and "_LOADER" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(dotted(target) == "_LOADER" for target in targets):
                    assert set(_loaders_in(node.value)) <= set(SAFE_LOADERS), path
        assert not {what for what in found_in(text) if what.startswith("yaml.")}, path


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("import pickle", "pickle"),
        ("from pickle import loads", "pickle"),
        ("import torch\ntorch.load(f)", "torch.load"),
        ("torch.load(f, weights_only=False)", "torch.load"),
        ("numpy.load(f, allow_pickle=True)", "numpy.load"),
        ("yaml.load(t)", "yaml.load"),
        ("yaml.load(t, Loader=yaml.Loader)", "yaml.load"),
        ("yaml.load(t, yaml.FullLoader)", "yaml.load"),
        ("yaml.unsafe_load(t)", "yaml.unsafe_load"),
        ("subprocess.run(c, shell=True)", "a shell"),
        ("subprocess.run(c, shell=wanted)", "a shell"),
        ("os.system(c)", "os.system"),
        ("eval(t)", "eval"),
        ("from concurrent.futures import ProcessPoolExecutor", "concurrent.futures.ProcessPoolExecutor"),
    ],
)
def test_the_search_finds_what_it_is_for(text: str, what: str) -> None:
    assert found_in(text) == {what}


@pytest.mark.parametrize(
    "text",
    [
        "re.compile(t)",
        "yaml.safe_load(t)",
        "yaml.load(t, Loader=yaml.SafeLoader)",
        "torch.load(f, weights_only=True)",
        "numpy.load(f)",
        "ast.literal_eval(t)",
        "subprocess.run([c], shell=False)",
        "model.eval()",
    ],
)
def test_the_search_leaves_the_rest_alone(text: str) -> None:
    assert found_in(text) == set()
