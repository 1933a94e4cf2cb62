"""Devices beside the processor: GPUs, emulators, and what is missing for them.

Each language that has any is asked in processes of its own with a deadline, so that a driver that hangs or crashes
hangs nobody, and no language is loaded here. What is missing says how to get it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from opsmith.records import printable
from opsmith.targets import lookup
from opsmith.targets.probed import TIMED, ProbedDevice

DEADLINE_S = 30.0
_KINDS = ("timed", "judged")
_ASK_LANGUAGE = """
import json, sys
from dataclasses import asdict
from importlib import import_module
probing = import_module(f"opsmith.targets.{sys.argv[1]}.probing")
print(json.dumps([asdict(device) for device in getattr(probing, f"probe_{sys.argv[2]}", tuple)()]))
"""


def probe_devices(deadline: float = DEADLINE_S) -> list[ProbedDevice]:
    """All that is here or could be, in one order; each probe ends with the deadline at the latest."""
    return _ask_languages(_KINDS, deadline)


@cache
def list_own_gpus() -> dict[str, str]:
    """The GPUs of this machine that programs are timed on: their digests by name (`cuda:0`)."""
    return {device.device: device.digest for device in _ask_languages(_KINDS[:1], DEADLINE_S) if device.use == TIMED}


def _ask_languages(kinds: Sequence[str], deadline: float) -> list[ProbedDevice]:
    folder = Path(lookup.__file__).parent
    languages = [name for name in lookup.LANGUAGES if (folder / name / "probing.py").is_file()]
    probes = [*product(languages, kinds)]
    with ThreadPoolExecutor(len(probes)) as executor:
        answers = executor.map(lambda probe: ask_language(probe[0], probe[1], deadline), probes)
        return list(dict.fromkeys(device for devices in answers for device in devices))  # languages may share one


def ask_language(language: str, kind: str, deadline: float) -> list[ProbedDevice]:
    """What a language says of its devices of a kind (timed, judged); or why it says nothing, as a device."""
    answer = _ask_process(["-c", _ASK_LANGUAGE, language, kind], deadline)
    if isinstance(answer, str):
        return [ProbedDevice(language, "", lacks=(f"{answer}; try: opsmith devices once more",))]
    return [ProbedDevice(**{**row, "lacks": tuple(row["lacks"])}) for row in answer]


def _ask_process(arguments: Sequence[str], seconds: float) -> Any:
    """What a process prints as JSON on its last line, or in words why there is nothing."""
    command = [sys.executable, *arguments]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )
    try:
        answer, words = process.communicate(timeout=seconds)
        return json.loads(answer.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return f"no answer within {seconds:g} s: it was ended"
    except (ValueError, IndexError):
        status = process.returncode
        ended = f"the probe was killed by signal {-status}" if status < 0 else f"the probe ended with {status}"
        return ": ".join([ended, *(printable(line) for line in words.decode(errors="replace").splitlines()[-1:])])[:500]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
