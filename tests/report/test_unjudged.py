"""Samples that no verdict was possible for: their reasons, and their number beside pass@1."""

from opsmith.judging.verifier import leave_unjudged
from opsmith.records import Boundary, Diagnostic
from opsmith.report.views import REASONS, count_beside, count_reasons
from opsmith.store.attempts import UnjudgedSample
from opsmith.store.queries import Tally


def _leave_sample(reason: str, temperature: float = 1.0, number: int = 0) -> UnjudgedSample:
    finding = Diagnostic("SANDBOX", "the build", reason, "a program that is emulated, or a GPU")
    return UnjudgedSample(number, "a", temperature, leave_unjudged("", Boundary.SANDBOX, finding).message)


def test_programs_that_cannot_be_judged_here_are_counted_by_what_they_use() -> None:
    samples = [_leave_sample(f"not emulated: line {line}: <mma.h>") for line in (2, 3)]
    samples.append(UnjudgedSample(0, "a", 1.0, ""))
    assert count_reasons(samples) == (("not emulated: <mma.h>", 2), ("being judged", 1))


def test_many_reasons_are_cut_and_none_of_their_samples_is_lost() -> None:
    counts = count_reasons([_leave_sample(f"not emulated: feature {number}") for number in range(REASONS + 4)])
    assert counts[-1] == ("other reasons", 4)
    assert sum(count for _, count in counts) == REASONS + 4


def test_beside_pass_at_1_stand_only_samples_of_its_round_and_temperature() -> None:
    tallies = [Tally(0, "a", 0.4, 1, 4), Tally(0, "a", 1.0, 1, 2), Tally(1, "a", 1.0, 2, 2)]
    samples = [_leave_sample("x", 1.0), _leave_sample("x", 1.0), _leave_sample("x", 0.4), _leave_sample("x", 1.0, 1)]
    assert count_beside(samples, tallies) == {"a": 2}
