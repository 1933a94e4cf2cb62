"""The oldest tables that there are stores of, as `opsmith.store.schema` makes them. Each later version has a file that
changes those of the one before: `revision = "8"`, `down_revision = "7"`, and `upgrade()` with Alembic's operations.
"""

revision = "7"
down_revision = None


def upgrade() -> None:
    """No store is older."""
