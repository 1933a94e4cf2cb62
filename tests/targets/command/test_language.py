"""A language's TOML file: what it says, what is refused and where, and which words its placeholders become."""

from pathlib import Path

import pytest

from opsmith.config import read_config
from opsmith.errors import TaskError, UsageError
from opsmith.problems.files.reading import read_problem
from opsmith.running.commands import CommandResult
from opsmith.scaffold.project import COMMAND, write_project
from opsmith.suites import load_tasks, read_task_file
from opsmith.targets import get_target
from opsmith.targets.command.arrays import name_arrays, read_arrays
from opsmith.targets.command.diagnostics import explain_compile
from opsmith.targets.command.improvement import describe_platform, write_improvement
from opsmith.targets.command.language import Language, read_language
from opsmith.targets.command.orders import MissingProgramError, find_programs, order_run
from opsmith.targets.protocols import Versioned

PROBLEM = """\
problem: shift
group: elementwise
dims: {M: 2, N: 3}
inputs:
  - {name: x, dtype: fp32, shape: [M, N], data: normal}
  - {name: mask, dtype: bool, shape: [N], data: "torch.ones(N, dtype=torch.bool)"}
scalars: {shift: 0.5}
outputs:
  - {name: y, dtype: fp32, shape: [M, N]}
reference: |
  def shift(x, mask, shift):
      return x * mask + shift
"""
MINIMAL = """\
name = "mini"
version = "1"
source = "program.txt"
prompt = "a language"

[run]
command = ["true"]
"""


def read_text(folder: Path, text: str) -> Language:
    file = folder / "language.toml"
    file.write_text(text)
    return read_language(file)


def test_a_small_file_is_a_language(tmp_path: Path) -> None:
    language = read_text(tmp_path, MINIMAL)
    assert language.version.startswith("mini-1-")
    assert language.prompt == "a language"
    assert language.tables.compile is None
    short = read_text(tmp_path, MINIMAL.replace('version = "1"\nsource = "program.txt"\n', ""))
    assert short.version == language.version, "what most files say is what is meant without a word"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "mini"\n', "", "language.toml: name: given nothing; expected this key"),
        (
            '["true"]',
            '["true", ["-o", "y"]]',
            "language.toml:7: run.command.1: given ['-o', 'y']; expected a list of words",
        ),
        ('["true"]', '["true", 5]', "language.toml:7: run.command.1: given 5; expected a word"),
        ('["true"]', '[["true", "{sizes}"]]', "a command whose first word is a program"),
        ('command = ["true"]', "command = []", "language.toml:7: run.command: given []; expected"),
        (
            'command = ["true"]',
            'comand = ["true"]',
            "language.toml:7: run.comand: given an unknown key; expected one of",
        ),
        ('["true"]', '["true", "{input}"]', "no placeholder {input}; known: {here}, {python}"),
        ('["true"]', '["true"]\ncycles = "("', "language.toml:8: run.cycles: given '('; expected a regular expression"),
        (
            '["true"]',
            '["true"]\narrays = "hdf5"',
            "language.toml:8: run.arrays: given 'hdf5'; expected 'raw', 'npy' or",
        ),
        (
            "program.txt",
            "../program.txt",
            "language.toml:3: source: given '../program.txt'; expected the name of a file",
        ),
        ("mini", "m i", "language.toml:1: name"),
        ("[run]", "[toolchain]\nreadable = ['nowhere']\n[run]", "language.toml:7: toolchain.readable: given"),
        ("[run]", "[toolchain]\nlicence_ports = [0]\n[run]", "language.toml:7: toolchain.licence_ports"),
        ("[run]", "[run", "not a readable TOML file"),
        ('"a language"', '"absent.md"', "absent.md"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(TaskError) as raised:
        read_text(tmp_path, MINIMAL.replace(old, new))
    assert words in str(raised.value)


def test_what_decides_a_verdict_changes_the_version_and_the_prompt_does_not(tmp_path: Path) -> None:
    versions = [
        read_text(tmp_path, MINIMAL.replace(*change)).version
        for change in (("", ""), ("a language", "another"), ('"true"', '"false"'), ('version = "1"', 'version = "2"'))
    ]
    assert versions[0] == versions[1]
    assert len(set(versions)) == 3


def test_another_simulator_is_another_toolchain(tmp_path: Path) -> None:
    """Verdicts of equal toolchains are equal: its files count, wherever they are imported."""
    write_project(tmp_path / "my-chip", kind=COMMAND)
    target = get_target(str(tmp_path / "my-chip" / "language.toml"))
    assert isinstance(target, Versioned)
    texts = [target.describe_toolchain(), target.describe_toolchain()]
    (tmp_path / "my-chip" / "tools" / "isa.py").write_text("LANES = 32\n")
    texts.append(target.describe_toolchain())
    assert texts[0] == texts[1] != texts[2]


def test_the_words_of_a_run(tmp_path: Path) -> None:
    words = '["true", "--out={outputs}", "{inputs}", "{sizes=}", "{scalars}", "-d", "{here}/x", "{source}"]'
    (tmp_path / "x").write_text("")
    readable = '\n[toolchain]\nreadable = ["x"]\n'
    language = read_text(tmp_path, MINIMAL.replace('["true"]', words) + readable)
    problem = read_problem(PROBLEM).problem
    order, _ = order_run(language, {"program.txt": b""}, name_arrays(problem, (2, 3, 0.5)), [b"1", b"2"])
    (command,) = order.commands
    here = str(tmp_path.resolve())
    expected = ["--out=out_y.bin", "in_x.bin", "in_mask.bin", "M=2", "N=3", "0.5", "-d"]
    assert command[1:] == [*expected, f"{here}/x", "program.txt"]
    assert order.outputs == ["out_y.bin"]
    assert dict(order.files) == {"program.txt": b"", "in_x.bin": b"1", "in_mask.bin": b"2"}


def test_a_group_of_words_is_repeated_for_each_value(tmp_path: Path) -> None:
    words = '["true", ["-i", "{inputs}"], ["-D{sizes=}"], ["--out", "x={outputs}"]]'
    language = read_text(tmp_path, MINIMAL.replace('["true"]', words))
    problem = read_problem(PROBLEM).problem
    order, _ = order_run(language, {}, name_arrays(problem, (2, 3, 0.5)), [b"1", b"2"])
    (command,) = order.commands
    assert command[1:] == ["-i", "in_x.bin", "-i", "in_mask.bin", "-DM=2", "-DN=3", "--out", "x=out_y.bin"]


def test_a_script_whose_interpreter_may_not_be_executed_is_told_with_the_way_out(tmp_path: Path) -> None:
    script = tmp_path / "simulate"
    language = read_text(tmp_path, MINIMAL.replace('"true"', '"{here}/simulate"'))
    for mark, words in (("#!/usr/bin/env python3", 'write "{python}" before it'), ("#!/bin/sh", "toolchain.readable")):
        script.write_text(f"{mark}\n")
        script.chmod(0o755)
        with pytest.raises(MissingProgramError, match="which its commands may not execute") as refused:
            find_programs(language)
        assert words in str(refused.value)
    readable = '\n[toolchain]\nreadable = ["/usr/bin", "/bin"]\n'
    assert find_programs(read_text(tmp_path, MINIMAL.replace('"true"', '"{here}/simulate"') + readable))


def test_a_file_of_a_command_that_its_commands_may_not_read_is_told_before_every_program_is_refused(
    tmp_path: Path,
) -> None:
    text = MINIMAL.replace('["true"]', '["{python}", "{here}/sim.py"]')
    with pytest.raises(
        TaskError, match=r"run\.command: given the file '\{here\}/sim\.py'; expected a file that exists"
    ):
        read_text(tmp_path, text)
    (tmp_path / "sim.py").write_text("")
    with pytest.raises(TaskError, match=r'toml:7: .*try: readable = \["sim\.py"\] under \[toolchain\]'):
        read_text(tmp_path, text)
    for readable in ("sim.py", "."):
        assert read_text(tmp_path, f'{text}\n[toolchain]\nreadable = ["{readable}"]\n')


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    for name in ("no-such-simulator", "bin/simulator"):
        with pytest.raises(MissingProgramError, match=name):
            find_programs(read_text(tmp_path, MINIMAL.replace('"true"', f'"{name}"')))


def test_files_of_numpy_go_in_and_come_out(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    language = read_text(tmp_path, MINIMAL + 'arrays = "npy"\n')
    arrays = name_arrays(read_problem(PROBLEM).problem, (2, 3, 0.5))
    x, mask = np.arange(6, dtype="<f4"), np.array([1, 0, 1], dtype="|b1")
    order, _ = order_run(language, {}, arrays, [x.tobytes(), mask.tobytes()])
    (tmp_path / "x.npy").write_bytes(order.files["in_x.npy"])
    assert np.array_equal(np.load(tmp_path / "x.npy"), x.reshape(2, 3))
    np.save(tmp_path / "y.npy", x.reshape(2, 3))
    data = (tmp_path / "y.npy").read_bytes()
    assert read_arrays("npy", arrays, {"out_y.npy": data}, b"", {}) == [x.tobytes()]
    for wrong, words in (
        (data.replace(b"<f4", b"<f8"), "descr '<f8' in place of '<f4'"),
        (data[:-4], "20 bytes in out_y.npy in place of 24"),
        (b"junk", "no file of numpy's"),
        (b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 9000, "too long"),
        (b"\x93NUMPY\x01\x00\xff\x0f" + b"(" * 9000, "no mapping"),
    ):
        problem = read_arrays("npy", arrays, {"out_y.npy": wrong}, b"", {})
        assert isinstance(problem, str)
        assert words in problem


def test_standard_input_and_output(tmp_path: Path) -> None:
    language = read_text(tmp_path, MINIMAL + 'arrays = "stdio"\n')
    arrays = name_arrays(read_problem(PROBLEM).problem, (2, 3, 0.5))
    order, _ = order_run(language, {}, arrays, [b"x" * 24, b"m" * 3])
    assert order.files[order.stdin] == b"x" * 24 + b"m" * 3
    assert read_arrays("stdio", arrays, {}, b"y" * 24, {}) == [b"y" * 24]
    assert read_arrays("stdio", arrays, {}, b"y", {}) == ("1 bytes on the standard output in place of 24")


def test_messages_become_findings_and_those_that_no_pattern_knows_are_quoted() -> None:
    pattern = r"^(?P<file>\S+):(?P<line>\d+): (?P<message>.*)$"
    result = CommandResult({}, b"", "p.txt:002: no such word\np.txt:9: too far\n", (1,))
    first, second = explain_compile(pattern, result, "one\ntwo\n", "mini")
    assert (first.kind, first.line, first.given, first.text) == ("COMPILE", 2, "no such word", "two")
    assert (second.line, second.text) == (9, "")
    (words,) = explain_compile(pattern, CommandResult({}, b"", "boom\x1b[31m\n", (1,)), "one", "mini")
    assert words.given.startswith("boom")
    assert "\x1b" not in words.given
    (limit,) = explain_compile(pattern, CommandResult({}, b"", "", (), "5 s of processor time"), "one", "mini")
    assert "5 s of processor time" in limit.given


# -- who may name it


def test_a_language_is_asked_for_by_the_path_of_its_file(tmp_path: Path) -> None:
    write_project(tmp_path / "my-chip", kind=COMMAND)
    name = str(tmp_path / "my-chip" / "language.toml")
    target = get_target(name)
    assert target is get_target(name)
    (task,) = load_tasks(["row_sum"], name)
    assert task.target == name
    assert "void kernel" not in task.shown
    assert "input x: fp32 [M, N]" in task.shown
    assert load_tasks(["attn_1"], name)[0].target == name  # a task of STeP states a problem too
    with pytest.raises(UsageError, match="does not exist"):
        get_target(str(tmp_path / "absent.toml"))


def test_no_other_file_may_name_it(tmp_path: Path) -> None:
    write_project(tmp_path / "my-chip", kind=COMMAND)
    task = tmp_path / "task.yaml"
    task.write_text(f"target: {tmp_path}/my-chip/language.toml\n{PROBLEM}")
    with pytest.raises(TaskError, match="expected the option --target"):
        read_task_file(task)
    settings = tmp_path / "run.toml"
    settings.write_text('model = "embedded"\ntarget = "my-chip/language.toml"\n')
    with pytest.raises(TaskError, match=r"run\.toml:2: target: given"):
        read_config(settings)


def test_patterns_are_not_tried_on_endless_lines() -> None:
    """Of cubic cost on one line of a quarter of a megabyte: years."""
    result = CommandResult({}, b"", "a" * (1 << 18) + "\n2: wrong\n", (1,))
    findings = explain_compile(r"^(a*)(a*)(?P<line>\d): (?P<message>\w+)$", result, "one\ntwo\n", "mini")
    assert [finding.line for finding in findings] == [2]


def test_what_the_agents_of_an_optimisation_round_are_told_is_the_files_and_no_part_of_the_version(
    tmp_path: Path,
) -> None:
    (tmp_path / "pair.md").write_text("before, after")
    texts = '\n[improvement]\nplatform = "many lanes"\nexample = "pair.md"\n'
    language, plain = (read_text(tmp_path, MINIMAL + table) for table in (texts, ""))
    assert language.version == plain.version
    assert "many lanes" in describe_platform(language)
    assert "a language" in describe_platform(plain)
    assert write_improvement(language, True).endswith("before, after")
    assert write_improvement(language, False) == write_improvement(plain, True)


@pytest.mark.parametrize(
    ("dtype", "kind"), [("uint8", "|u1"), ("int16", "<i2"), ("fp8_e4m3", "|u1"), ("int4x2", "|u1")]
)
def test_narrow_types_are_numbers_of_numpy_or_bytes(tmp_path: Path, dtype: str, kind: str) -> None:
    np = pytest.importorskip("numpy")
    text = f"problem: same\ndims: {{N: 5}}\ninputs: [{{name: x, dtype: {dtype}, shape: [N], data: 'randint(0, 9)'}}]\n"
    text += f"outputs: [{{name: y, dtype: {dtype}, shape: [N]}}]\nreference: |\n  def same(x):\n      return x\n"
    arrays = name_arrays(read_problem(text + ("accumulation: fp32\n" if "fp8" in dtype else "")).problem, (5,))
    x = np.arange(5).astype(kind)
    order, _ = order_run(read_text(tmp_path, MINIMAL + 'arrays = "npy"\n'), {}, arrays, [x.tobytes()])
    (tmp_path / "x.npy").write_bytes(order.files["in_x.npy"])
    assert np.array_equal(np.load(tmp_path / "x.npy"), x)
    assert read_arrays("npy", arrays, {"out_y.npy": order.files["in_x.npy"]}, b"", {}) == [x.tobytes()]
