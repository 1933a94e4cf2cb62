"""What making right programs better needs: the phase of a round, what analysts suggested, the gain of an experience,
and the task of a profile. No row is rewritten: columns that are added may be null.
"""

import sqlalchemy as sa
from alembic import op

from opsmith.store.migrations.versions.v1 import key_column, make_table, seconds_column, text_column

revision = "5"
down_revision = "4"


def upgrade() -> None:
    op.add_column("round", text_column("phase", null=True))
    op.add_column("profile", text_column("task", null=True))
    op.add_column("experience", sa.Column("gain", sa.Float, nullable=True))
    make_table("suggestion", key_column("sample"), text_column("run"), text_column("body"), seconds_column("at"))
    op.create_index("suggestion_by_run", "suggestion", ["run"])
