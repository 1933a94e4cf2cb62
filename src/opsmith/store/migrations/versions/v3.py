"""The first version that Alembic keeps account of. An index that no question used any more goes; the one of bills finds
them by request too, so that a sum by round, task or agent reads no reply.
"""

from alembic import op

revision = "3"
down_revision = "2"

_BILL = ("requests", "input_tokens", "output_tokens", "cached_tokens", "cost_usd")


def upgrade() -> None:
    op.drop_index("request_by_round", "request", if_exists=True)
    op.drop_index("reply_by_bill", "reply")
    op.create_index("reply_by_request", "reply", ["run", "request", *_BILL])
