"""Pausing, later verdicts, batches; indices for looking at large runs page by page."""

from alembic import op

from opsmith.store.migrations.versions.v1 import _key, _number, _seconds, _table, _text

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
    _table("control", _number(), _text("run"), _text("wish"), _seconds("at"), clustered=False)
    later = (_text("run"), _text("stage"), _text("outcome"), _text("body"), _seconds("seconds"), _seconds("at"))
    _table("reverdict", _key("sample"), _key("candidate"), _key("verifier"), *later)
    _table("batched", _key("request"), _key("batch"), _text("model"), _seconds("at"))
    _table("batch_failure", _key("request"), _key("batch"), _seconds("at"))
    for name, (table, *columns) in _INDICES.items():
        op.create_index(name, table, columns)
