"""What C needs of a machine is said in one sentence, before a model is asked or a process is started."""

import pytest

from opsmith.api import load_task
from opsmith.errors import UsageError
from opsmith.judging.pool import Pool
from opsmith.running.toolchain import NO_COMPILER
from opsmith.targets import c as language
from opsmith.targets.c.canonical import NO_PARSER
from opsmith.targets.native import build


@pytest.fixture(autouse=True)
def asked_anew(monkeypatch):
    monkeypatch.setattr(language.CTarget, "explain_lack", staticmethod(language.C.explain_lack.__wrapped__))


@pytest.mark.parametrize("is_asked", ["admit", "submit"])
def test_without_a_compiler_nothing_starts(monkeypatch, is_asked):
    monkeypatch.setattr(build, "find_toolchain", lambda: None)
    monkeypatch.setattr(language, "find_spec", lambda name: object())
    task = load_task("softmax", "c")
    with Pool(1) as pool, pytest.raises(UsageError, match=f"task softmax: {NO_COMPILER}"):
        pool.admit([task]) if is_asked == "admit" else pool.submit(task, "").result()


def test_without_the_parser_the_package_to_install_is_named(monkeypatch):
    monkeypatch.setattr(language, "find_spec", lambda name: None)
    assert language.C.explain_lack() == NO_PARSER


def test_other_languages_need_none_of_it(monkeypatch):
    monkeypatch.setattr(build, "find_toolchain", lambda: None)
    with Pool(1) as pool:
        pool.admit([load_task("gemm_0")])
