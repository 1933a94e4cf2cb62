"""The pictures of the first minute are what `opsmith draw` makes of a run of today's code."""

from pathlib import Path

from docs.blocks import DOCS
from docs.shell import Shell

RUN = "opsmith run --tasks attn_1 --samples 64 --temperature 1.0 --max-rounds 1 --seed 0 --no-report"


def test_the_first_minute_is_drawn_from_a_run(tmp_path: Path) -> None:
    """`make run` holds the same samples of this task: what is asked for does not depend on other tasks in round 0."""
    with Shell(tmp_path) as shell:
        for command in (RUN, *(f"opsmith draw embedded attn_1 --width {width} -o {width}.svg" for width in (880, 400))):
            printed, code = shell.run(command)
            assert code == 0, printed
    for name, width in (("first-minute", 880), ("first-minute-narrow", 400)):
        committed = (DOCS / "assets" / f"{name}.svg").read_text(encoding="utf-8")
        drawn = (tmp_path / f"{width}.svg").read_text(encoding="utf-8")
        assert drawn == committed, f"try: opsmith draw RUN attn_1 --width {width} -o docs/assets/{name}.svg"
