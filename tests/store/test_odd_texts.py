"""Texts that no SQLite file can hold."""

import pytest

from opsmith.errors import StoreError
from opsmith.store import Store
from opsmith.store.rows import text_row


def test_half_a_surrogate_pair_is_refused_in_words_and_keeps_nobody_waiting(tmp_path):
    with Store.open(tmp_path) as store:
        with pytest.raises(StoreError, match="surrogates not allowed"):
            store.put([text_row("odd \ud83d text")]).result(timeout=10)
        with pytest.raises(StoreError, match="surrogates not allowed"):
            store.put([text_row("plain")]).result(timeout=10)
