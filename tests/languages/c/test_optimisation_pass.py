"""The pass of `make optimise`: a plain program becomes faster, and right, by models that read nothing but prompts."""

from pathlib import Path

from targets.native.programs import needs_compiler

from opsmith.store import Store
from opsmith.targets.c.canonical import write_canonical
from opsmith_lab.cli.optimising_bench import PassPlan, perform_pass, read_programs

LEAST = 1.2  # of what is measured as 1.6 to five times as fast, on a machine that may be busy


@needs_compiler
def test_sums_become_faster_whatever_their_variables_are_called(tmp_path: Path) -> None:
    plan = PassPlan(rounds=1, attempts=2, analyst="analyst", seed=1, rename=5, drawn=None)
    tasks = plan.load_tasks(["mean_variance"], tmp_path)
    with Store.open(tmp_path / "runs") as store:
        run = perform_pass(plan, tasks, store)
        programs = dict(read_programs(store, run))
        speeds = store.read_speeds(run)
    best = programs["mean_variance"]
    assert best.attempts == 2
    assert best.right >= 1
    assert best.changes
    assert write_canonical(best.source) != write_canonical(tasks[0].impl or "")
    assert "sum" not in best.source  # it was rewritten from the program with other names
    ratios = [each.report.measurement.ratio for each in speeds]
    assert max(ratio.precise.value for ratio in ratios if ratio is not None) > LEAST
