"""What a user gives the generator: instructions by round, sources within a size, and rules that refuse with a line."""

import pytest

from opsmith.errors import TaskError, UsageError
from opsmith.learn.material import LARGEST_SOURCE, read_material
from opsmith.learn.text_rules import compile_rules, refuse_text
from opsmith.records import Outcome
from opsmith.settings import Generation
from opsmith.targets.c import C
from opsmith.targets.step import STEP

PROGRAM = """\
#include <math.h>
/* goto is not
   used: goto */
void kernel(void)
{
    // goto here
    const char *text = "goto /* no comment */";
    for (int i = 0; i < 3; i++) sqrtf(2.0f);
}
"""


def test_a_file_is_for_every_round(tmp_path):
    (tmp_path / "hints.md").write_text("be brief")
    material = read_material(Generation(instructions=str(tmp_path / "hints.md")))
    assert [material.find_instructions(number) for number in (1, 7)] == ["be brief", "be brief"]


def test_a_folder_says_what_is_for_one_round(tmp_path):
    for name, text in (("all.md", "be brief"), ("round-1.md", "tile"), ("round-3.txt", "unroll")):
        (tmp_path / name).write_text(text)
    material = read_material(Generation(instructions=str(tmp_path)))
    assert [material.find_instructions(number) for number in (1, 2, 3)] == [
        "be brief\n\ntile",
        "be brief",
        "be brief\n\nunroll",
    ]


@pytest.mark.parametrize("name", ["", "first.md", "round-0.md", "round-x.txt"])
def test_a_folder_with_other_files_is_refused(tmp_path, name):
    if name:
        (tmp_path / name).write_text("x")
    with pytest.raises(UsageError, match=r"expected all\.md, round-1\.md"):
        read_material(Generation(instructions=str(tmp_path)))


def test_sources_are_read_within_a_size_and_each_name_once(tmp_path):
    (tmp_path / "a").mkdir()
    for name, text in (("vector.h", "static int x;"), ("large.h", "x" * (LARGEST_SOURCE + 1)), ("a/vector.h", "")):
        (tmp_path / name).write_text(text)
    material = read_material(Generation(sources=(str(tmp_path / "vector.h"),)))
    assert [(source.name, source.text) for source in material.sources] == [("vector.h", "static int x;")]
    with pytest.raises(UsageError, match="expected at most"):
        read_material(Generation(sources=(str(tmp_path / "large.h"),)))
    with pytest.raises(UsageError, match="another source is called"):
        read_material(Generation(sources=(str(tmp_path / "vector.h"), str(tmp_path / "a" / "vector.h"))))
    with pytest.raises(TaskError, match="no regular file"):
        read_material(Generation(sources=(str(tmp_path / "missing.h"),)))


def test_what_the_files_say_names_a_run(tmp_path):
    file = tmp_path / "hints.md"
    digests = set()
    for text in ("tile", "unroll"):
        file.write_text(text)
        digests.add(read_material(Generation(instructions=str(file))).digest)
    assert len(digests) == 2
    assert not read_material(Generation()).digest


def test_a_denied_pattern_refuses_with_line_and_remedy():
    verdict = refuse_text(compile_rules([r"\bsqrtf\b"], []), C, PROGRAM)
    assert verdict is not None
    assert verdict.outcome is Outcome.REFUSED
    assert verdict.stage.name == C.stages[0]
    assert verdict.errors[0].line == 8
    assert "sqrtf" in verdict.message
    assert "try:" in verdict.message


def test_comments_are_no_part_of_the_text_but_strings_are():
    (finding,) = compile_rules(["goto"], []).list_findings(C.blank_comments(PROGRAM))
    assert finding.line == 7
    assert refuse_text(compile_rules(["used|here"], []), C, PROGRAM) is None


def test_a_name_that_is_split_over_lines_is_found():
    (finding,) = compile_rules(["goto"], []).list_findings(C.blank_comments("a;\n  go\\\nto x;\n"))
    assert finding.line == 2


def test_an_allowed_pattern_covers_a_match_that_lies_within_it():
    assert refuse_text(compile_rules([r"sqrtf"], [r"sqrtf\(2\.0f\)"]), C, PROGRAM) is None
    assert refuse_text(compile_rules([r"sqrtf\(2\.0f\);"], [r"sqrtf\(2\.0f\)"]), C, PROGRAM) is not None


def test_the_rules_hold_for_languages_whose_comments_end_with_the_line():
    rules = compile_rules(["RepeatRef"], [])
    assert refuse_text(rules, STEP, "E1 = step.Copy().apply(E0)  # RepeatRef\nreturn E1") is None
    verdict = refuse_text(rules, STEP, "E1 = step.RepeatRef().apply((E0, E0))\nreturn E1")
    assert verdict is not None
    assert verdict.errors[0].line == 1


def test_a_model_is_told_the_rules():
    told = compile_rules(["goto", "asm"], [r"asm\(\"\"\)"]).describe()
    assert all(pattern in told for pattern in ("- goto", "- asm", r"- asm\(\"\"\)"))
    assert not compile_rules([], ["x"]).describe()


def test_a_pattern_that_is_none_is_refused():
    with pytest.raises(UsageError, match="expected a regular expression"):
        compile_rules(["(goto"], [])
