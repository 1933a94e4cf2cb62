"""Which request lies in which batch of a provider. The ledger of `models.batch`, kept in the store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from opsmith.store import Row, Store
from opsmith.store.schema import batch_failure, batched


class StoreLedger:
    """Fits `models.batch.Ledger`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def list_batches(self, model: str) -> dict[str, str]:
        return self._store.read_batches(model)

    async def note_submitted(self, model: str, batch: str, names: Sequence[str]) -> None:
        await self._put_rows(
            [(batched, {"request": n, "batch": batch, "model": model, "at": time.time()}) for n in names]
        )

    async def note_failed(self, batch: str, names: Sequence[str]) -> None:
        await self._put_rows([(batch_failure, {"request": name, "batch": batch, "at": time.time()}) for name in names])

    async def _put_rows(self, rows: list[Row]) -> None:
        await asyncio.wrap_future(self._store.put(rows))
