"""Texts that a database cannot hold, or not as they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsmith.errors import StoreError
from opsmith.store import Store
from opsmith.store.rows import text_row
from opsmith.store.texts import escape_text, unescape_text


def test_half_a_surrogate_pair_is_refused_in_words_and_keeps_nobody_waiting(where):
    with Store.open(where) as store:
        with pytest.raises(StoreError, match="surrogates not allowed"):
            store.put([text_row("odd \ud83d text")]).result(timeout=60)
        with pytest.raises(StoreError, match="surrogates not allowed"):
            store.put([text_row("plain")]).result(timeout=60)


@pytest.mark.parametrize("odd", ["a\0b", "\x1b0", "\x1b", "\0\x1b1\0", "\\0", "", "\U0010ffff\r\n\t"])
def test_every_other_text_comes_back_as_it_was(where, odd):
    name, row = text_row(odd)[1]["hash"], text_row(odd)
    with Store.open(where) as store:
        store.put([row]).result(timeout=60)
        assert store.read_text(name) == odd


@given(st.text(alphabet="\0\x1b01a"))
def test_escaping_loses_nothing(text):
    assert unescape_text(escape_text(text)) == text
    assert "\0" not in escape_text(text)
