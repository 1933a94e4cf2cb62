"""What languages beside STeP need: the problem of a task, the phase of a request, parents in other samples, where a
candidate was built and ran; measurements and profiles. No row is rewritten: columns that are added may be null.
"""

import sqlalchemy as sa
from alembic import op

from opsmith.store.migrations.versions.v1 import key_column, make_table, seconds_column, text_column

revision = "4"
down_revision = "3"

_COLUMNS = (
    ("task", "problem"),
    ("request", "phase"),
    ("candidate", "parent_sample"),
    ("verdict", "device"),
    ("verdict", "build"),
    ("reverdict", "device"),
    ("reverdict", "build"),
)


def upgrade() -> None:
    for table, name in _COLUMNS:
        op.add_column(table, text_column(name, null=True))
    make_table(
        "measurement",
        key_column("run"),
        key_column("id"),
        text_column("task"),
        text_column("sample", null=True),
        text_column("program"),
        text_column("against", null=True),
        text_column("device"),
        text_column("shape"),
        text_column("protocol"),
        text_column("grade"),
        text_column("unit"),
        *(sa.Column(name, sa.Float, nullable=True) for name in ("value", "lower", "upper")),
        text_column("reason"),
        text_column("body"),
        seconds_column("seconds"),
        seconds_column("at"),
    )
    columns = (
        text_column("sample"),
        text_column("candidate"),
        text_column("device"),
        text_column("kind"),
        text_column("media"),
        text_column("body"),
    )
    make_table("profile", key_column("run"), key_column("id"), *columns, seconds_column("at"))
