"""Runs whose candidates are Metal, judged by emulation: nothing is lost, and the report says who never saw them."""

from chaos.processes import Commands

from languages.job_tests import JobTests, WholeRun


class TestRunsInMetal(JobTests):
    language = "metal"
    toolchain = r"emulated by clang.*; never seen by Apple's compiler"
    test_a_run_costs_what_the_provider_s_prices_say = None  # prices know no language

    def test_the_report_says_who_never_saw_the_programs(self, whole: WholeRun) -> None:
        words = "emulated; never seen by Apple's compiler"
        with Commands(whole.folder) as commands:
            for name in ("own.html", "own.md"):
                assert commands.start("report", whole.name, "--out", "runs", "-o", name).code() == 0
                assert words in (whole.folder / name).read_text("utf-8").replace("&#39;", "'")
