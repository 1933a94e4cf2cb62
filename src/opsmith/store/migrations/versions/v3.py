"""The first version that Alembic keeps account of; an index that no question used any more goes."""

from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    op.drop_index("request_by_round", "request", if_exists=True)
