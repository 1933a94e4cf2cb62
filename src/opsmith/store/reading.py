"""The way that every question to a store takes: a query, and the rows of what is committed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Row, Select, func, select, true
from sqlalchemy.exc import SQLAlchemyError

from opsmith.records import Outcome, Stage
from opsmith.store import schema
from opsmith.store.database import Database
from opsmith.store.patience import Patience, Stubborn
from opsmith.store.schema import plan_node, request, round_, text


class Reading:
    """What all questions have in common. Raises StoreError when the store cannot be read."""

    def __init__(self, database: Database, patience: Patience) -> None:
        self._database = database
        self._reading = Stubborn(patience)
        self.path = database.name

    def fetch_rows(self, query: Select[Any]) -> list[Row[Any]]:
        """The rows of a query."""
        return self._reading.try_patiently(lambda: self._run_query(query))

    def read_text(self, name: str) -> str:
        """The text of that hash."""
        body: str = self.fetch_rows(select(text.c.body).where(text.c.hash == name))[0].body
        return body

    def read_texts(self, names: Iterable[str]) -> dict[str, str]:
        """The texts of these hashes."""
        query = select(text.c.hash, text.c.body).where(text.c.hash.in_(sorted(set(names))))
        return {row.hash: row.body for row in self.fetch_rows(query)}

    def list_ids(self) -> list[str]:
        """Of all runs, the oldest first."""
        return [row.id for row in self.fetch_rows(select(schema.run.c.id).order_by(schema.run.c.at))]

    def read_names(self) -> dict[str, str]:
        """By run the name that somebody gave it last; of those that have one."""
        tag = schema.tag
        query = select(tag.c.run, tag.c.name).join(schema.run, schema.run.c.id == tag.c.run)
        query = query.where(tag.c.change == "name")
        names = {row.run: row.name for row in self.fetch_rows(query.order_by(tag.c.id_number))}
        return {named: name for named, name in names.items() if name}

    def find_optimisation(self, run: str) -> int | None:
        """The number of a run's first round that makes right programs better; None: it has none.

        Rounds before it are functional, all after it are not: what is counted of a run's solving ends there.
        """
        first = select(func.min(round_.c.number)).where(round_.c.run == run, round_.c.phase.is_not(None))
        number: int | None = self.fetch_rows(first)[0][0]
        return number

    def list_optimised_runs(self) -> list[str]:
        """The runs that have rounds which make right programs better."""
        query = select(round_.c.run).where(round_.c.phase.is_not(None)).distinct()
        return [row.run for row in self.fetch_rows(query)]

    def is_functional(self, run: str) -> Any:
        """A condition: a request of the run's functional rounds. It is no condition at all where the run has no others,
        so that its plan is as it was."""
        first = self.find_optimisation(run)
        return true() if first is None else request.c.round < first

    def list_children(self, run: str) -> frozenset[str]:
        """The ids of the children that plans of a run have: what counts its tasks leaves them out."""
        rows = self.fetch_rows(select(plan_node.c.id).where(plan_node.c.run == run).distinct())
        return frozenset(row.id for row in rows)

    def count_rows(self, table: Any, run: str, *conditions: Any) -> int:
        """How many rows a run has in a table."""
        query = select(func.count()).select_from(table).where(table.c.run == run, *conditions)
        number: int = self.fetch_rows(query)[0][0]
        return number

    def _run_query(self, query: Select[Any]) -> list[Row[Any]]:
        try:
            with self._database.engine.connect() as connection:
                return list(connection.execute(query))
        except (SQLAlchemyError, OSError) as error:
            raise self._database.explain_error(error) from error


def read_outcome(row: Any) -> tuple[Stage | None, Outcome | None]:
    """How a sample ended; None twice: without a verdict."""
    return Stage(row.stage) if row.stage else None, Outcome(row.outcome) if row.outcome else None
