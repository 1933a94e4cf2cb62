"""Programs that are given to a run are kept with their verdicts."""

import sqlalchemy as sa
from alembic import op

from opsmith.store.texts import TEXT

revision = "10"
down_revision = "9"


def upgrade() -> None:
    names = ("run", "task", "body", "source", "author", "place", "verdict")
    op.create_table(
        "known",
        sa.Column("id_number", sa.Integer, primary_key=True, autoincrement=True),
        *(sa.Column(name, TEXT, nullable=False) for name in names),
        sa.Column("seconds", sa.Float, nullable=True),
        sa.Column("at", sa.Float, nullable=True),
    )
    op.create_index("known_by_run", "known", ["run", "id_number"])
