"""Processes that run code of others inherit no key and no password."""

from __future__ import annotations

import os

import pytest

from opsmith.environment import secret_names
from opsmith.verification.nursery import _environment

SECRETS = {
    "OPENAI_API_KEY": "sk-x",
    "my_token": "x",
    "AWS_SECRET_ACCESS_KEY_ID": "x",
    "GOOGLE_APPLICATION_CREDENTIALS": "/x.json",
    "PGPASSWORD": "x",
    "OPSMITH_STORE": "postgresql://me:canary@db.example/runs",
    "HTTPS_PROXY": "http://me:canary@proxy.example:3128",
    "HTTP_PROXY": "http://me:can/ary@proxy.example:3128",
    "DATABASE_URL": "postgresql://db.example/runs?user=me&password=canary",
}
OTHERS = {
    "LANG": "C.UTF-8",
    "HTTP_PROXY": "http://proxy.example:3128",
    "OPSMITH_STORE": "postgresql://me@db.example/runs",
    "MAIL": "me@example.org",
    "URL": "https://example.org/a:b@c",
}


@pytest.mark.parametrize("name", SECRETS)
def test_what_is_secret_is_told(name: str) -> None:
    assert secret_names({name: SECRETS[name]}) == {name}


def test_the_rest_is_not() -> None:
    assert secret_names(OTHERS) == frozenset()


def test_workers_inherit_none_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    kept = _environment()
    assert not SECRETS.keys() & kept.keys()
    assert "canary" not in str(kept)
    assert {"PATH", "PYTHONPATH"} <= kept.keys() <= os.environ.keys() | kept.keys()
