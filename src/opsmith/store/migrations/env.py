"""Run by Alembic: migrations in the transaction that `opsmith.store.versions` has begun."""

from alembic import context

from opsmith.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
