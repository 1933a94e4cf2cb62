"""A round says how its prompts were fitted into a context window, a reply among how many its counts were shared out."""

import sqlalchemy as sa
from alembic import op

from opsmith.store.texts import TEXT

revision = "9"
down_revision = "8"


def upgrade() -> None:
    op.add_column("round", sa.Column("fit", TEXT, nullable=True))
    op.add_column("reply", sa.Column("shared", sa.Integer, nullable=True))
