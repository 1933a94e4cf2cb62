"""`make audit` says nothing is known only when every package was looked up."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / ".ci" / "audit.py"
SKIPPED = {"name": "jinja2", "skip_reason": "Dependency not found on PyPI and could not be audited: jinja2 (2.11.0)"}
CLEAN = {"name": "pyyaml", "version": "6.0.2", "vulns": []}
KNOWN = {"name": "jinja2", "version": "2.11.0", "vulns": [{"id": "PYSEC-2021-66", "fix_versions": ["2.11.3"]}]}


@pytest.fixture(scope="module")
def audit():
    spec = importlib.util.spec_from_file_location("audit", FILE)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize(
    ("found", "problem", "code", "words"),
    [
        ([CLEAN], "", 0, "1 of 1 packages looked up\n  pyyaml 6.0.2\n  findings: 0"),
        ([CLEAN, KNOWN], "", 1, "jinja2 2.11.0: PYSEC-2021-66: mended in 2.11.3"),
        ([CLEAN, SKIPPED], "", 3, "1 of 2 packages looked up\n  pyyaml 6.0.2\n  not looked up: jinja2"),
        ([KNOWN, SKIPPED], "", 1, "findings: 1"),
        (
            [SKIPPED],
            "",
            3,
            "0 of 1 packages looked up\n  nothing can be said: the service does not answer here (Depend",
        ),
        ([], "", 3, "0 of 0"),
        (None, "Failed to resolve 'pypi.org'", 3, "not audited: Failed to resolve 'pypi.org'; try: "),
        (None, "", 3, "not audited: no answer"),
    ],
)
def test_what_was_not_looked_up_is_not_called_clean(audit, capsys, found, problem, code, words) -> None:
    assert audit.report("constraints.txt", found, problem) == code
    assert words in capsys.readouterr().out


def test_without_its_tool_it_says_so(audit, capsys, tmp_path) -> None:
    """The environment of the tests has no pip-audit: its real answer is an error of Python's."""
    (tmp_path / "constraints.txt").write_text("pyyaml==6.0.2\n")
    assert audit.main([str(tmp_path / "constraints.txt")]) == 3
    printed = capsys.readouterr().out
    assert "audit of 20" in printed
    assert "not audited: " in printed
