"""The first schema."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from opsmith.store.texts import TEXT

revision = "1"
down_revision = None


def upgrade() -> None:
    _create_texts()
    _create_runs()
    _create_sessions()
    _create_rounds()
    _create_requests()
    _create_verdicts()
    _create_experiences()
    op.create_index("request_by_round", "request", ["run", "round", "task"])


def _create_texts() -> None:
    make_table("meta", key_column("name"), text_column("value"))
    make_table("text", key_column("hash"), text_column("body"))


def _create_runs() -> None:
    make_table(
        "run",
        key_column("id"),
        text_column("identity"),
        text_column("model"),
        sa.Column("is_language_model", sa.Boolean, nullable=False),
        text_column("target"),
        sa.Column("seed", sa.BigInteger, nullable=False),
        text_column("settings"),
        text_column("versions"),
        seconds_column("at"),
    )
    make_table("task", key_column("run"), key_column("id"), text_column("digest"), text_column("body"))


def _create_sessions() -> None:
    make_table(
        "session",
        number_column(),
        text_column("run"),
        text_column("settings"),
        text_column("versions"),
        text_column("commit", null=True),
        seconds_column("at"),
        clustered=False,
    )
    make_table(
        "session_end",
        number_column(),
        text_column("run"),
        text_column("reason"),
        seconds_column("seconds"),
        seconds_column("at"),
        clustered=False,
    )
    make_table("run_end", key_column("run"), text_column("reason"), seconds_column("at"))


def _create_rounds() -> None:
    make_table(
        "round",
        key_column("run"),
        integer_column("number", key=True),
        integer_column("cycle"),
        text_column("level"),
        text_column("demonstrations"),
        text_column("attempted"),
        integer_column("planned"),
        seconds_column("at"),
    )
    make_table(
        "round_end", key_column("run"), integer_column("number", key=True), text_column("solved"), seconds_column("at")
    )


def _create_requests() -> None:
    make_table(
        "request",
        key_column("id"),
        text_column("run"),
        integer_column("round"),
        text_column("task"),
        sa.Column("temperature", sa.Float, nullable=False),
        integer_column("number"),
        text_column("agent"),
        text_column("sample"),
        text_column("prompt"),
        sa.Column("seed", sa.BigInteger, nullable=True),
        integer_column("max_tokens"),
    )
    make_table(
        "reply",
        key_column("request"),
        text_column("run"),
        text_column("texts"),
        text_column("finish"),
        text_column("model"),
        integer_column("requests"),
        integer_column("input_tokens"),
        integer_column("output_tokens"),
        integer_column("cached_tokens"),
        sa.Column("cost_usd", sa.Float, nullable=True),
        seconds_column("seconds"),
        seconds_column("at"),
    )
    make_table(
        "failure",
        number_column(),
        text_column("run"),
        text_column("sample"),
        integer_column("round"),
        text_column("task"),
        text_column("charged_to"),
        text_column("message"),
        seconds_column("at"),
        clustered=False,
    )


def _create_verdicts() -> None:
    make_table(
        "candidate",
        key_column("sample"),
        key_column("id"),
        text_column("run"),
        text_column("parent", null=True),
        text_column("agent"),
    )
    make_table(
        "verdict",
        key_column("sample"),
        key_column("candidate"),
        text_column("run"),
        text_column("stage"),
        text_column("outcome"),
        sa.Column("final", sa.Boolean, nullable=False),
        text_column("body"),
        seconds_column("seconds"),
        seconds_column("at"),
    )


def _create_experiences() -> None:
    make_table(
        "experience",
        key_column("run"),
        key_column("task"),
        key_column("digest"),
        integer_column("round"),
        text_column("body"),
        text_column("source"),
        sa.Column("success_rate", sa.Float, nullable=False),
        text_column("origin"),
        text_column("sample", null=True),
        sa.Column("contaminated", sa.Boolean, nullable=False),
    )


def make_table(name: str, *columns: sa.Column[Any], clustered: bool = True) -> None:
    op.create_table(name, *columns, sqlite_with_rowid=not clustered)


def key_column(name: str) -> sa.Column[Any]:
    return sa.Column(name, TEXT, primary_key=True)


def text_column(name: str, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, TEXT, nullable=null)


def integer_column(name: str, key: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer, primary_key=key, nullable=False, autoincrement=False)


def seconds_column(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Float, nullable=True)


def number_column() -> sa.Column[Any]:
    return sa.Column("id_number", sa.Integer, primary_key=True, autoincrement=True)
