"""How older databases become today's: one file a version, run by Alembic."""
