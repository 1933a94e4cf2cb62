"""Every test of the models runs with a canary key, and without the keys and proxies of whoever runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .common import CANARY


@pytest.fixture(autouse=True)
def canary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[str]:
    """Sets the keys to the canary; afterwards it must not be in the log."""
    monkeypatch.chdir(tmp_path)
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
    for provider in ("OPENAI", "ANTHROPIC", "DEEPSEEK", "TOGETHER"):
        monkeypatch.setenv(f"{provider}_API_KEY", CANARY)
    caplog.set_level("DEBUG")
    yield CANARY
    assert CANARY not in caplog.text
