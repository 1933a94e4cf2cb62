"""Programs that forge the clock of their process, or slow their partner there: over a pack, too, they have no figure."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
from targets.native.programs import needs_compiler

import opsmith_lab
from languages.remote.requests import make_request
from languages.remote.test_carried_by_hand import merge_all, run_runner
from opsmith.judging.pool import Pool
from opsmith.measuring.claims import LEAST_GAIN
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.record import MeasuringGrade
from opsmith.remote.packing import pack_requests, write_pack

ATTACKS = Path(opsmith_lab.__file__).parent / "attacks" / "c" / "clocks"
pytestmark = [
    needs_compiler,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="they are written for x86-64"),
]


@pytest.mark.parametrize("grade", MeasuringGrade)
@pytest.mark.parametrize("cheat", ["forged_clock", "forged_at_times"])
def test_a_forged_clock_is_contradicted_by_ours_on_the_other_machine(
    pool: Pool, room: TimingRoom, tmp_path: Path, cheat: str, grade: MeasuringGrade
) -> None:
    source = (ATTACKS / f"row_sum__{cheat}.c").read_text("utf-8")
    pack = pack_requests(room, pool.verify, [make_request("row_sum", ["small"], source, grade)])
    write_pack(pack, tmp_path, "", "")
    assert run_runner(tmp_path).returncode == 0
    (report,) = merge_all(room, pack, tmp_path)
    assert report.measurement.time is None
    assert report.measurement.ratio is None
    assert "the clock outside it" in report.measurement.reason


OF_PROCESS, OF_PARTNER = "what the clock of its process says", "beside the program the partner takes"


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        ("patched_partner", [OF_PARTNER]),
        (
            "answers_ahead",
            ["the clock outside it", OF_PROCESS, OF_PARTNER],
        ),  # whichever a busy machine lets speak first
        ("forged_by_a_quarter", [OF_PROCESS]),
    ],
)
def test_a_partner_is_known_from_a_process_without_the_program_there_too(
    pool: Pool, room: TimingRoom, tmp_path: Path, attack: str, words: list[str]
) -> None:
    source = (ATTACKS / f"row_sum__{attack}.c").read_text("utf-8")
    request = make_request("row_sum", ["small"], source, MeasuringGrade.SCREEN)
    pack = pack_requests(room, pool.verify, [request])
    write_pack(pack, tmp_path, "", "")
    assert run_runner(tmp_path).returncode == 0
    (report,) = merge_all(room, pack, tmp_path)
    ratio = report.measurement.ratio
    if ratio is not None:  # a thread that found no processor gains nothing
        assert ratio.precise.low <= LEAST_GAIN
    else:
        assert any(own in report.measurement.reason for own in words)
