"""Runs whose candidates are WGSL, run by the software driver of this machine: nothing is lost, and the report says all."""

from languages.job_tests import JobTests


class TestRunsInWgsl(JobTests):
    language = "wgsl"
    toolchain = r"llvmpipe"
