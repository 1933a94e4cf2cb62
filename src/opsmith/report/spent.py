"""What a run spent, and on what. Its bill by round, agent and task, and the price lists that held."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from opsmith.models.price import PRICE_LIST
from opsmith.records import Usage, printable
from opsmith.report.tables import count_noun, make_table, not_a_model
from opsmith.results.by_model import name_proposers, share_bills
from opsmith.store.proposers import sum_bills
from opsmith.store.queries import Reader
from opsmith.store.rows import turn_of
from opsmith.store.spending import By, PriceList, count_pictures, count_uncounted, known_usd, price_lists, usage_by

BY: tuple[By, ...] = ("round", "agent", "task", "model")


@dataclass(frozen=True)
class RunBill:
    """A run's bill. In a `Usage`, `cost_usd` None: not known of some reply in it."""

    run: str
    model: str
    is_language_model: bool
    total: Usage
    known_usd: float  # of the replies whose cost is known
    uncounted: int  # requests whose replies came without token counts
    prices: tuple[PriceList, ...]
    by: Mapping[str, Mapping[str, Usage]]
    pictures: int = 0  # that were sent with the requests


def spent_of(reader: Reader, run: str, sums: Sequence[str] = ()) -> RunBill:
    """The bill, by each of the `sums`; (): by all that there are, by model where several replied."""
    info = reader.read_info(run)
    assert info is not None
    usage_by_sum: dict[str, dict[str, Usage]] = {
        name: _sum_bill(reader, run, name) for name in BY if name in (sums or BY)
    }
    if not sums and len(usage_by_sum["model"]) < 2:
        del usage_by_sum["model"]
    known_cost, missing, prices = known_usd(reader, run), count_uncounted(reader, run), tuple(price_lists(reader, run))
    return RunBill(
        run, info.model, info.is_language_model, reader.sum_usage(run), known_cost, missing, prices, usage_by_sum,
        count_pictures(reader, run),
    )  # fmt: skip


def spent_table(spent: RunBill, by: str) -> Table:
    """A row for each round, agent or task, and their sum."""
    with_reasoning = spent.total.reasoning_tokens > 0
    numbers = ("requests", "input", "cached", "output", *(["reasoning"] if with_reasoning else []), "USD")
    rows = make_table(by, *numbers, right=numbers, least=("cached", "reasoning"))
    for name, usage in spent.by[by].items():
        rows.add_row(printable(name), *_usage_cells(usage, with_reasoning))
    rows.add_section()
    rows.add_row("all", *_usage_cells(spent.total, with_reasoning))
    return rows


def spent_lines(spent: RunBill) -> Iterator[str]:
    """What one must know to read the tables rightly."""
    yield f"run     {printable(spent.run)}"
    mark = "" if spent.is_language_model else f"  ({not_a_model(spent.model)})"
    yield f"model   {printable(spent.model)}{mark}"
    yield f"prices  {'; '.join(map(_price_list, spent.prices))}"
    if spent.total.cost_usd is None and spent.known_usd:
        yield f"cost    unknown of some replies; all others cost ${spent.known_usd:.4f}"
    elif spent.total.cost_usd is None:
        yield "cost    unknown: no price of this model at this server is listed"
    if spent.pictures:
        yield f"images  {count_noun(spent.pictures, 'picture')} sent with the requests; their tokens are in the input"
    if spent.uncounted:
        yield f"warning: {count_noun(spent.uncounted, 'request')} answered without token counts, which every sum lacks"


def _sum_bill(reader: Reader, run: str, by: By) -> dict[str, Usage]:
    """By model: of a run of several by the names that the user wrote, else by those that servers report."""
    info = reader.read_info(run)
    if by == "model" and info is not None and len(name_proposers(info)) > 1:
        return share_bills(info, sum_bills(reader, run))
    usage = usage_by(reader, run, by)
    names = sorted(usage, key=turn_of) if by == "agent" else list(usage)
    return {str(name): usage[name] for name in names}


def _usage_cells(usage: Usage, with_reasoning: bool) -> tuple[str, ...]:
    reasoning = [usage.reasoning_tokens] if with_reasoning else []  # part of the output
    counts = (usage.requests, usage.input_tokens, usage.cached_tokens, usage.output_tokens, *reasoning)
    return *(f"{count:,}" for count in counts), "unknown" if usage.cost_usd is None else f"{usage.cost_usd:,.4f}"


def _price_list(prices: PriceList) -> str:
    if prices.version is None:
        return "version not noted"
    return f"{PRICE_LIST} {prices.version}, since {time.strftime('%Y-%m-%d', time.gmtime(prices.since))}"
