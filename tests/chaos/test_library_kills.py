"""`kill -9` of whoever replaces a library, at many moments: there is always a whole one, the old or the new."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from opsmith.export.folder import check_free, hold_folder
from opsmith.suites.library import FILE, FORMAT

FILES = 120
WRITER = f"""
import sys
from functools import partial
from pathlib import Path
from opsmith.export.folder import hold_folder, write_folder, write_texts
from opsmith.export.manifest import with_files
from opsmith.suites.library import FORMAT

for number in range(1_000_000):
    files = {{f"ops/operators/op_{{place}}.py": f"number = {{number}}\\n" * 50 for place in range({FILES})}}
    manifest = with_files({{"format": FORMAT, "number": number % 7}}, files)
    with hold_folder(Path(sys.argv[1]), print):
        write_folder(Path(sys.argv[1]), partial(write_texts, files={{**files, "{FILE}": manifest}}))
    print(number, flush=True)
"""


def test_a_library_that_is_replaced_is_whole_after_every_kill(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    kills = 4 * int(request.config.getoption("--kills"))
    folder, generator, unfinished = tmp_path / "library", random.Random(5), 0
    for _ in range(kills):
        writers = [
            subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True)
            for _ in range(2)  # which wait for each other
        ]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline().strip()
        time.sleep(generator.uniform(0.0, 0.3))
        for writer in writers:
            writer.kill()
            writer.communicate()
        check_free(folder, FILE, FORMAT)  # every file is there, and as its manifest says
        manifest = json.loads((folder / FILE).read_text())
        assert len(manifest["files"]) == FILES
        assert all((folder / path).is_file() for path in manifest["files"])
        unfinished += len(list(tmp_path.glob(".library.*")))
    with hold_folder(folder, None):
        assert list(tmp_path.iterdir()) == [folder]
    print(f"{kills} kills of two writers; {unfinished} unfinished folders were left beside the library, and removed")
    assert unfinished
