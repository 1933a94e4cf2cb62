"""Pausing, later verdicts, batches; indices for looking at large runs page by page."""

from alembic import op

from opsmith.store.migrations.versions.v1 import key_column, make_table, number_column, seconds_column, text_column

revision = "2"
down_revision = "1"

_PLACE = ("round", "task", "temperature", "number")
_BILL = ("requests", "input_tokens", "output_tokens", "cached_tokens", "cost_usd")
_INDICES = {
    "request_by_place": ("request", "run", *_PLACE, "agent"),
    "reply_by_bill": ("reply", "run", *_BILL),
    "verdict_by_time": ("verdict", "run", "at"),
    "candidate_by_agent": ("candidate", "run", "agent"),
    "control_by_run": ("control", "run", "id_number"),
    "failure_by_run": ("failure", "run", "round"),
}


def upgrade() -> None:
    make_table(
        "control", number_column(), text_column("run"), text_column("wish"), seconds_column("at"), clustered=False
    )
    later = (
        text_column("run"),
        text_column("stage"),
        text_column("outcome"),
        text_column("body"),
        seconds_column("seconds"),
        seconds_column("at"),
    )
    make_table("reverdict", key_column("sample"), key_column("candidate"), key_column("verifier"), *later)
    make_table("batched", key_column("request"), key_column("batch"), text_column("model"), seconds_column("at"))
    make_table("batch_failure", key_column("request"), key_column("batch"), seconds_column("at"))
    for name, (table, *columns) in _INDICES.items():
        op.create_index(name, table, columns)
