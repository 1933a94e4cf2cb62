"""What a run's programs can be taken away as: one option of `opsmith export` for each form that their language has."""

from __future__ import annotations

from opsmith.targets.protocols import Bindable, Modular, Packaged, Target


def advise_forms(target: Target) -> str:
    """Those that programs of the target have, as options: `--kernelbench DIR or --dataset DIR`."""
    forms = (("--library", Packaged), ("--kernelbench", Modular), ("--flashinfer", Bindable))
    options = [option for option, form in forms if isinstance(target, form)]
    return " or ".join(f"{option} DIR" for option in (*options, "--dataset"))
