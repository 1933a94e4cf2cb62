"""Runs whose candidates are Triton: nothing is lost, and the report says that no GPU ran them."""

from chaos.processes import Commands

from languages.job_tests import JobTests, WholeRun


class TestRunsInTriton(JobTests):
    language = "triton"
    toolchain = r"interpreted and compiled by triton .*; not run on a GPU"
    test_a_run_costs_what_the_provider_s_prices_say = None  # prices know no language

    def test_the_report_says_that_no_gpu_ran_the_programs(self, whole: WholeRun) -> None:
        words = "not run on a GPU"
        with Commands(whole.folder) as commands:
            assert commands.start("report", whole.name, "--out", "runs", "-o", "own.md").code() == 0
        assert words in (whole.folder / "own.md").read_text("utf-8")
