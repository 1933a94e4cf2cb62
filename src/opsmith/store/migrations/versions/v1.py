"""The first schema."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from opsmith.store.texts import TEXT

revision = "1"
down_revision = None


def upgrade() -> None:
    _table("meta", _key("name"), _text("value"))
    _table("text", _key("hash"), _text("body"))
    _table(
        "run",
        _key("id"),
        _text("identity"),
        _text("model"),
        sa.Column("is_language_model", sa.Boolean, nullable=False),
        _text("target"),
        sa.Column("seed", sa.BigInteger, nullable=False),
        _text("settings"),
        _text("versions"),
        _seconds("at"),
    )
    _table("task", _key("run"), _key("id"), _text("digest"), _text("body"))
    _table(
        "session",
        _number(),
        _text("run"),
        _text("settings"),
        _text("versions"),
        _text("commit", null=True),
        _seconds("at"),
        clustered=False,
    )
    _table(
        "session_end", _number(), _text("run"), _text("reason"), _seconds("seconds"), _seconds("at"), clustered=False
    )
    _table("run_end", _key("run"), _text("reason"), _seconds("at"))
    _table(
        "round",
        _key("run"),
        _integer("number", key=True),
        _integer("cycle"),
        _text("level"),
        _text("demonstrations"),
        _text("attempted"),
        _integer("planned"),
        _seconds("at"),
    )
    _table("round_end", _key("run"), _integer("number", key=True), _text("solved"), _seconds("at"))
    _table(
        "request",
        _key("id"),
        _text("run"),
        _integer("round"),
        _text("task"),
        sa.Column("temperature", sa.Float, nullable=False),
        _integer("number"),
        _text("agent"),
        _text("sample"),
        _text("prompt"),
        sa.Column("seed", sa.BigInteger, nullable=True),
        _integer("max_tokens"),
    )
    _table(
        "reply",
        _key("request"),
        _text("run"),
        _text("texts"),
        _text("finish"),
        _text("model"),
        _integer("requests"),
        _integer("input_tokens"),
        _integer("output_tokens"),
        _integer("cached_tokens"),
        sa.Column("cost_usd", sa.Float, nullable=True),
        _seconds("seconds"),
        _seconds("at"),
    )
    _table(
        "failure",
        _number(),
        _text("run"),
        _text("sample"),
        _integer("round"),
        _text("task"),
        _text("charged_to"),
        _text("message"),
        _seconds("at"),
        clustered=False,
    )
    _table("candidate", _key("sample"), _key("id"), _text("run"), _text("parent", null=True), _text("agent"))
    _table(
        "verdict",
        _key("sample"),
        _key("candidate"),
        _text("run"),
        _text("stage"),
        _text("outcome"),
        sa.Column("final", sa.Boolean, nullable=False),
        _text("body"),
        _seconds("seconds"),
        _seconds("at"),
    )
    _table(
        "experience",
        _key("run"),
        _key("task"),
        _key("digest"),
        _integer("round"),
        _text("body"),
        _text("source"),
        sa.Column("success_rate", sa.Float, nullable=False),
        _text("origin"),
        _text("sample", null=True),
        sa.Column("contaminated", sa.Boolean, nullable=False),
    )
    op.create_index("request_by_round", "request", ["run", "round", "task"])


def _table(name: str, *columns: sa.Column[Any], clustered: bool = True) -> None:
    op.create_table(name, *columns, sqlite_with_rowid=not clustered)


def _key(name: str) -> sa.Column[Any]:
    return sa.Column(name, TEXT, primary_key=True)


def _text(name: str, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, TEXT, nullable=null)


def _integer(name: str, key: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer, primary_key=key, nullable=False, autoincrement=False)


def _seconds(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Float, nullable=True)


def _number() -> sa.Column[Any]:
    return sa.Column("id_number", sa.Integer, primary_key=True, autoincrement=True)
