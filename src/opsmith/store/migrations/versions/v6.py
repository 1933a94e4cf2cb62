"""What plans, tools and several models need: how tasks were split, calls of tools with their results, the model of a
sample, and reasoning tokens. No row is rewritten: columns that are added may be null.
"""

import sqlalchemy as sa
from alembic import op

from opsmith.store.migrations.versions.v1 import integer_column, key_column, make_table, seconds_column, text_column

revision = "6"
down_revision = "5"

_BILL = ("requests", "input_tokens", "output_tokens", "cached_tokens", "cost_usd", "reasoning_tokens")


def upgrade() -> None:
    op.add_column("request", text_column("asked", null=True))
    op.add_column("failure", text_column("asked", null=True))
    op.add_column("reply", text_column("calls", null=True))
    op.add_column("reply", sa.Column("reasoning_tokens", sa.Integer, nullable=True))
    op.drop_index("reply_by_request", "reply")
    op.create_index("reply_by_request", "reply", ["run", "request", *_BILL])
    _create_tool_calls()
    _create_plans()


def _create_tool_calls() -> None:
    make_table(
        "tool_call",
        key_column("sample"),
        integer_column("number", key=True),
        text_column("run"),
        text_column("turn"),
        text_column("name"),
        text_column("arguments"),
        text_column("result"),
        text_column("outcome"),
        seconds_column("seconds"),
        seconds_column("at"),
    )
    op.create_index("tool_call_by_run", "tool_call", ["run"])


def _create_plans() -> None:
    make_table(
        "plan",
        key_column("run"),
        key_column("id"),
        text_column("task"),
        integer_column("number"),
        text_column("planner"),
        text_column("reason"),
        integer_column("round"),
        text_column("body"),
        seconds_column("at"),
    )
    make_table(
        "plan_node",
        key_column("run"),
        key_column("id"),
        key_column("plan"),
        integer_column("place"),
        text_column("digest"),
        text_column("body"),
        seconds_column("at"),
    )
