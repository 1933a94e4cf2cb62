"""A run has a secret that its hidden sizes are drawn from; programs that would be kept have a verdict of their own."""

import sqlalchemy as sa
from alembic import op

from opsmith.store.texts import TEXT

revision = "8"
down_revision = "7"


def upgrade() -> None:
    op.add_column("run", sa.Column("secret", TEXT, nullable=True))
    op.create_table(
        "full_verdict",
        sa.Column("sample", TEXT, primary_key=True),
        sa.Column("candidate", TEXT, primary_key=True),
        sa.Column("run", TEXT, nullable=False),
        sa.Column("stage", TEXT, nullable=False),
        sa.Column("outcome", TEXT, nullable=False),
        sa.Column("body", TEXT, nullable=False),
        sa.Column("seconds", sa.Float, nullable=True),
        sa.Column("at", sa.Float, nullable=True),
        sqlite_with_rowid=False,
    )
    op.create_index("full_verdict_by_run", "full_verdict", ["run"])
