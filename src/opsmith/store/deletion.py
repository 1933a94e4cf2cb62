"""How a run leaves a store. As a whole, in one transaction: its own rows, and the texts that no other run names.

A process may have written a text and not yet the row that names it. So texts stay as long as any other run is being
worked on; the next deletion takes them. What is known of a provider's batches stays too: it is named by what was asked
for, and whoever asks for the same finds its batch again instead of paying for another one.
"""

from __future__ import annotations

import json

from sqlalchemy import Connection, bindparam, delete, except_, select

from opsmith.store import schema
from opsmith.store.database import Database
from opsmith.store.queries import Reader
from opsmith.store.rows import read_prompt_names
from opsmith.store.schema import (
    candidate,
    experience,
    full_verdict,
    known,
    measurement,
    plan,
    plan_node,
    profile,
    request,
    reverdict,
    suggestion,
    task,
    text,
    tool_call,
    verdict,
)

_REFERENCES = ("from_run", "budget_from", "tokens_from")  # settings that name another run, or the beginning of it
_NAMING = (  # columns that hold the hash of a text
    *(task.c.body, request.c.prompt, candidate.c.id, verdict.c.body, reverdict.c.body, full_verdict.c.body),
    *(experience.c.body, experience.c.source, measurement.c.body, profile.c.body, suggestion.c.body),
    *(verdict.c.build, reverdict.c.build, plan.c.body, plan_node.c.body, tool_call.c.arguments, tool_call.c.result),
    *(known.c.body, known.c.source, known.c.verdict),
)


def referring_runs(reader: Reader, run: str) -> list[str]:
    """The other runs that began with this one's solutions, or were allowed to spend what it spent.

    The beginning of an id means a run that was there already: never one that began later. A name that the run has had
    may be what another one means.
    """
    origins = select(experience.c.run).where(experience.c.origin == run, experience.c.run != run).distinct()
    users = {row.run for row in reader.fetch_rows(origins)}
    rows = reader.fetch_rows(select(schema.run.c.id, schema.run.c.at, schema.run.c.settings))
    own = select(schema.tag.c.name).where(schema.tag.c.run == run, schema.tag.c.change == "name")
    own_names = {run, *(row.name for row in reader.fetch_rows(own) if row.name)}
    began = next((row.at for row in rows if row.id == run), 0.0)
    for row in rows:
        settings = json.loads(row.settings)
        names = [settings.get(name) for name in _REFERENCES] if row.id != run else []
        if own_names & set(names) or (row.at >= began and any(name and run.startswith(str(name)) for name in names)):
            users.add(row.id)
    return sorted(users)


def delete_run(database: Database, run: str) -> None:
    """Whoever calls holds the run."""
    with database.open_transaction() as connection:
        database.hold_writers(connection)
        for table in schema.metadata.tables.values():
            owner = table.c.id if table is schema.run else table.c.get("run")
            if owner is not None:
                connection.execute(delete(table).where(owner == run))
        remaining = connection.execute(select(schema.run.c.id)).scalars().all()
        if not any(map(database.is_held, remaining)):
            _delete_unnamed_texts(connection)


def _delete_unnamed_texts(connection: Connection) -> None:
    query = except_(select(text.c.hash), *(select(column) for column in _NAMING))
    unnamed = set(connection.execute(query).scalars())
    prompts = select(text.c.body).where(text.c.hash.in_(select(request.c.prompt)))
    for body in connection.execute(prompts).scalars():  # the texts and pictures of what was asked
        unnamed.difference_update(*(message.names for message in read_prompt_names(body)))
    if unnamed:
        deletion = delete(text).where(text.c.hash == bindparam("name"))
        connection.execute(deletion, [{"name": name} for name in sorted(unnamed)])
