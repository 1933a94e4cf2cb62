from opsmith.suites import load_tasks
from opsmith_lab.bench.overhead import measure_overhead


def test_a_round_against_a_server_on_loopback_is_measured_whole() -> None:
    found = measure_overhead(load_tasks(("index_0", "gemm_0")), 16, 8, 0.05)
    assert (found["requests"], found["judged"]) == (16, 16)
    assert found["ideal_s"] == 0.1
    assert found["wall_s"] >= found["ideal_s"]
    assert found["client_cpu_ms_per_request"] > 0
