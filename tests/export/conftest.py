"""One pool of workers for all tests of exports; the embedded benchmark's tasks."""

from collections.abc import Iterator

import pytest

from opsmith.judging.pool import Pool


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    with Pool(1) as made:
        yield made
