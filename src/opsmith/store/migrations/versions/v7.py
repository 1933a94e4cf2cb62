"""What people say of a run: notes and tags. No row is rewritten."""

from alembic import op

from opsmith.store.migrations.versions.v1 import (
    integer_column,
    key_column,
    make_table,
    number_column,
    seconds_column,
    text_column,
)

revision = "7"
down_revision = "6"


def upgrade() -> None:
    make_table(
        "note",
        key_column("run"),
        integer_column("number", key=True),
        text_column("body"),
        seconds_column("at"),
    )
    make_table(
        "tag",
        number_column(),
        text_column("run"),
        text_column("name"),
        text_column("change"),
        seconds_column("at"),
        clustered=False,
    )
    op.create_index("tag_by_run", "tag", ["run", "id_number"])
