"""Runs whose candidates are CUDA, judged without a GPU: nothing is lost, and the report says all."""

from languages.job_tests import JobTests


class TestRunsInCuda(JobTests):
    language = "cuda"
    toolchain = r"emulated.*nvrtc|nvrtc.*emulated"
