"""The clock of another process counts its work, threads included, and neither its sleep nor what it says itself."""

import os
import subprocess
import sys
import time

import pytest

from opsmith.timing.engine import read_process_clock

WORK = "import time, threading\ndef work():\n while time.thread_time() < 0.05: pass\n"


def run_program(text: str) -> tuple[int, int]:
    """Nanoseconds of processor time before and after the program's own text, up to what it prints."""
    command = [sys.executable, "-S", "-c", f"print(flush=True); input(); {text}\nprint(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        readings = []
        for _ in range(2):
            process.stdout.readline()
            reading = read_process_clock(process.pid)
            assert reading is not None
            readings.append(reading)
            process.stdin.write(b"\n")
            process.stdin.flush()
    return readings[0], readings[1]


def test_work_is_counted_and_sleep_is_not() -> None:
    before, after = run_program(f"exec({WORK + 'work()'!r})")
    assert after - before >= 0.03e9, "it used 0.05 s, of which its start is a part"
    before, after = run_program("import time; time.sleep(0.2)")
    assert after - before < 0.1e9


def test_work_of_another_thread_is_counted() -> None:
    threads = WORK + "thread = threading.Thread(target=work)\nthread.start()\nthread.join()"
    before, after = run_program(f"exec({threads!r})")
    assert after - before >= 0.04e9


def test_our_own_clock_is_the_one_that_python_reads() -> None:
    first, reading, last = time.process_time_ns(), read_process_clock(os.getpid()), time.process_time_ns()
    assert reading is not None
    assert first <= reading <= last


def test_no_process_has_no_clock() -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert read_process_clock(process.pid) is not None, "it has ended, and nobody waited for it"
    process.wait()
    assert read_process_clock(process.pid) is None
    with pytest.raises(ValueError, match="expected a positive number"):
        read_process_clock(0)
