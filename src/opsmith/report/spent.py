"""What did a run spend, and on what? Its bill by round, agent and task, and the price lists that held."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from opsmith.models.price import PRICE_LIST
from opsmith.records import Usage, printable
from opsmith.report.closing import not_a_model
from opsmith.report.tables import table
from opsmith.store.queries import Reader
from opsmith.store.rows import turn_of
from opsmith.store.spending import By, PriceList, known_usd, price_lists, uncounted, usage_by

BY: tuple[By, ...] = ("round", "agent", "task")


@dataclass(frozen=True)
class Spent:
    """A run's bill. In a `Usage`, `cost_usd` None: not known of some reply in it."""

    run: str
    model: str
    is_language_model: bool
    total: Usage
    known_usd: float  # of the replies whose cost is known
    uncounted: int  # requests whose replies came without token counts
    prices: tuple[PriceList, ...]
    by: Mapping[str, Mapping[str, Usage]]


def spent_of(reader: Reader, run: str, wanted: Sequence[str] = BY) -> Spent:
    """The bill, by each of the `wanted`."""
    info = reader.info(run)
    assert info is not None
    parts: dict[str, dict[str, Usage]] = {name: _part(reader, run, name) for name in BY if name in wanted}
    known, missing, prices = known_usd(reader, run), uncounted(reader, run), tuple(price_lists(reader, run))
    return Spent(run, info.model, info.is_language_model, reader.usage(run), known, missing, prices, parts)


def spent_table(spent: Spent, by: str) -> Table:
    """A row for each round, agent or task, and their sum."""
    numbers = ("requests", "input", "cached", "output", "USD")
    made = table(by, *numbers, right=numbers)
    for name, usage in spent.by[by].items():
        made.add_row(printable(name), *_cells(usage))
    made.add_section()
    made.add_row("all", *_cells(spent.total))
    return made


def spent_lines(spent: Spent) -> Iterator[str]:
    """What one must know to read the tables rightly."""
    yield f"run     {spent.run}"
    mark = "" if spent.is_language_model else f"  ({not_a_model(spent.model)})"
    yield f"model   {printable(spent.model)}{mark}"
    yield f"prices  {'; '.join(map(_price_list, spent.prices))}"
    if spent.total.cost_usd is None and spent.known_usd:
        yield f"cost    unknown of some replies; all others cost ${spent.known_usd:.4f}"
    elif spent.total.cost_usd is None:
        yield "cost    unknown: no price of this model at this server is listed"
    if spent.uncounted:
        yield f"warning: {spent.uncounted:,} requests were answered without token counts, which every sum lacks"


def _part(reader: Reader, run: str, by: By) -> dict[str, Usage]:
    found = usage_by(reader, run, by)
    names = sorted(found, key=turn_of) if by == "agent" else list(found)
    return {str(name): found[name] for name in names}


def _cells(usage: Usage) -> tuple[str, ...]:
    counts = (usage.requests, usage.input_tokens, usage.cached_tokens, usage.output_tokens)
    return *(f"{count:,}" for count in counts), "unknown" if usage.cost_usd is None else f"{usage.cost_usd:,.4f}"


def _price_list(found: PriceList) -> str:
    if found.version is None:
        return "version not noted"
    return f"{PRICE_LIST} {found.version}, since {time.strftime('%Y-%m-%d', time.gmtime(found.since))}"
