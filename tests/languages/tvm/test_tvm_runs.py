"""Runs whose candidates are TVMScript: nothing is lost, and verdicts name TVM and the compiler that links."""

from languages.job_tests import JobTests


class TestRunsInTvm(JobTests):
    language = "tvm"
    toolchain = r"tvm 0\.\d+.*, gcc"
    test_a_run_costs_what_the_provider_s_prices_say = None  # prices know no language
