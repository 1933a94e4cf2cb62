"""Keys come from the environment, else from .env, and never leave in a message."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from clocks import lasts_at_most

from opsmith.errors import UsageError
from opsmith.models.keys import MAX_ENV_BYTES, blot_secrets, read_env_file, read_key, redact_secrets

from .common import CANARY


def test_the_environment_wins_over_the_file_and_is_not_changed():
    Path(".env").write_text("OPENAI_API_KEY=sk-from-file-123\nOTHER_KEY=sk-from-file-456\n")
    before = dict(os.environ)
    assert read_key("OPENAI_API_KEY") == CANARY
    assert read_key("OTHER_KEY") == "sk-from-file-456"
    assert read_key("MISSING_KEY") is None
    assert dict(os.environ) == before


def test_the_file_is_read_in_its_usual_forms():
    Path(".env").write_text(
        "\ufeff# a comment\n\nexport A_KEY=one # why\nB='t#wo' # x\r\n C = \"th ree\" \nD=\nE=a=b\nnot a line\n1X=y\n"
    )
    assert read_env_file() == {"A_KEY": "one", "B": "t#wo", "C": "th ree", "D": "", "E": "a=b"}


@pytest.mark.parametrize("content", [b"\xff\xfe\x00K=v", b"K=" + b"x" * (MAX_ENV_BYTES * 2), b""])
def test_a_strange_file_does_no_harm(content):
    Path(".env").write_bytes(content)
    assert len(read_env_file().get("K", "")) < MAX_ENV_BYTES


def test_a_folder_named_env_is_no_file():
    Path(".env").mkdir()
    assert read_env_file() == {}


@pytest.mark.parametrize("value", ["sk one", "sk-\u2026", "sk-a\nb"])
def test_a_malformed_key_is_refused_without_showing_it(monkeypatch, value):
    monkeypatch.setenv("OPENAI_API_KEY", value)
    with pytest.raises(UsageError) as caught:
        read_key("OPENAI_API_KEY")
    assert "OPENAI_API_KEY" in str(caught.value)
    assert value not in str(caught.value)


def test_a_key_ends_where_its_line_ends(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", " sk-abcdefgh\n")
    assert read_key("OPENAI_API_KEY") == "sk-abcdefgh"


def test_every_known_secret_is_removed_from_a_text(monkeypatch):
    monkeypatch.setenv("MY_SERVER_TOKEN", "tok/en+123=")
    Path(".env").write_text("TOGETHER_API_KEY=from-the-file\n")
    text = f"a {CANARY} b tok/en+123= c from-the-file d handed-over e sk-abc***wxyz1 f Bearer xyz g"
    assert redact_secrets(text, ["handed-over"]) == "a [key] b [key] c [key] d [key] e [key] f Bearer [key] g"


def test_half_of_a_long_secret_is_removed_but_not_half_of_a_path(monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "abcdefghijklmnopqrstuvwx")
    monkeypatch.setenv("MY_SSH_KEY", "/home/somebody/secrets/key.pem")
    assert blot_secrets("cut off: abcdefghijkl") == "cut off: [key]"
    assert blot_secrets("in an address: k=abcdefghijklmnopqrstuvwx&") == "in an address: k=[key]&"
    assert blot_secrets("/home/somebody/runs") == "/home/somebody/runs"


def test_a_password_in_an_address_is_removed_from_a_message():
    text = "proxy http://me:pa55word@proxy.example:3128 refused; postgresql://me:pa55@h/db, http://h:80/a@b"
    assert (
        redact_secrets(text)
        == "proxy http://[key]@proxy.example:3128 refused; postgresql://[key]@h/db, http://h:80/a@b"
    )
    assert redact_secrets("expected postgresql://USER:PASSWORD@HOST") == "expected postgresql://USER:PASSWORD@HOST"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://me:pa/55@h/db", "postgresql://[key]@h/db"),
        ("postgresql://me:pa@55@h/db?m=a@b", "postgresql://[key]@h/db?m=a@b"),
        ("postgresql://me:55:pa@h/db", "postgresql://[key]@h/db"),
        (
            "postgresql://h/db?user=me&password=pa/55&sslmode=require",
            "postgresql://h/db?user=me&password=[key]&sslmode=require",
        ),
        ("http://h?Password=pa55", "http://h?Password=[key]"),
    ],
)
def test_a_password_is_removed_wherever_an_address_has_it(address, shown):
    assert redact_secrets(f"no answer from {address} today") == f"no answer from {shown} today"


@pytest.mark.parametrize("part", ["://", "://a:", "a:", "://a:b/", "?password=", "sk-", "Bearer ", "x"])
def test_the_time_to_redact_a_text_grows_with_its_length_alone(part):
    with lasts_at_most(20.0):  # a search that is quadratic takes hours
        redact_secrets("://" + part * (1_000_000 // len(part)))


def test_short_values_do_not_blank_out_words(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    assert redact_secrets("none of the tasks") == "none of the tasks"
