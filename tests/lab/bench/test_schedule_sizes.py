"""Searches side by side: a kernel is stated at the size that it is tuned at; unknown names are refused at once."""

import pytest

from opsmith.errors import UsageError
from opsmith.measuring.measure import choose_timed_sets
from opsmith_lab.bench.schedule_sizes import SIZES, ScheduleTable


def test_a_kernel_is_stated_at_one_size_and_timed_at_all(tmp_path):
    table = ScheduleTable(None, None, tmp_path, 1, 1)
    for kernel, sizes in SIZES.items():
        assert len(set(sizes)) == 10
        task = table._load_task(kernel, "c", sizes[1], sizes)
        assert task.impl
        assert [tuple(each.values()) for each in choose_timed_sets(task).values()] == list(sizes)
        alone = choose_timed_sets(table._load_task(kernel, "c", sizes[1], sizes[1:2]))
        assert {tuple(each.values()) for each in alone.values()} == {sizes[1]}


@pytest.mark.parametrize(("searches", "kernels"), [(["embedded"], ["softmax"]), (["tuner"], ["row_sum"])])
def test_unknown_names_are_refused(tmp_path, searches, kernels):
    with pytest.raises(UsageError, match="expected one of"):
        next(ScheduleTable(None, None, tmp_path, 1, 1).list_rows(searches, kernels, 3, print))
