"""Sessions of one run, each a process of its own, until one of them ends by itself. Only a process without threads may fork them."""

import os
from collections.abc import Callable


def run_until_done(run_session: Callable[[], object]) -> tuple[int, int]:
    """How many sessions ended by a signal, and the exit code of the last one."""
    killed = 0
    while True:
        child = os.fork()
        if not child:
            run_session()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            return killed, os.waitstatus_to_exitcode(status)
        killed += 1
