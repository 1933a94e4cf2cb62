"""Runs whose candidates are Metal, judged by emulation: nothing is lost, and the report says who never saw them."""

from languages.job_tests import JobTests


class TestRunsInMetal(JobTests):
    language = "metal"
    toolchain = r"emulated by clang.*; never seen by Apple's compiler"
