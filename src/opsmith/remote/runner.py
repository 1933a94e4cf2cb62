"""Times packed programs on the machine that it is started on: Python >= 3.8 and nothing else.

    python3 runner.py FOLDER [--results FOLDER]     # a folder that `opsmith measure --pack` wrote
    python3 runner.py --stream                      # the same over a pipe, as `opsmith measure --on ssh:HOST` does

FOLDER holds `manifest.json` and `files/`, each named by its sha256, and beside this file the modules of ours that it
imports: `opsmith/timing`, and one for each language, which calls its programs (`timing.carried`). A shape set of a
program is measured in processes apart from this one; what is measured is kept in `results/`, so that the same command
goes on where it was stopped, and `results.json` says it all at the end. Inputs follow from seeds that are drawn here;
outputs of timed calls are kept, and are compared where the folder was packed: no expected value is here.

Programs run with the rights of whoever starts this: what is packed was judged right in confinement before.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if not __package__:  # started as a file: what it imports lies beside it
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from opsmith.timing.carried import (
    FORMAT,
    RESULTS,
    OutputFiles,
    PackedFolder,
    is_ending,
    kill_group,
    running,
    take_answers,
)
from opsmith.timing.engine import TimingFault, count_processors

if TYPE_CHECKING:
    Record = Mapping[str, Any]

# -- the machine

_TEXTS = ("proc/cpuinfo", "proc/meminfo", "sys/hypervisor/type")
_FOLDERS = ("sys/devices/system/cpu/cpu0/cpufreq", "sys/devices/system/cpu/cpu0/cache")
_CACHE_FILES = ("level", "type", "size", "shared_cpu_list")
_FREQUENCIES = ("scaling_governor", "cpuinfo_max_freq", "scaling_cur_freq")


def describe_machine(root: Path = Path("/")) -> dict[str, Any]:
    """What Linux says of the processor, as texts: who packed reads them as its own."""
    files = [root / name for name in _TEXTS]
    files += [root / _FOLDERS[0] / name for name in _FREQUENCIES]
    files += [file / name for file in sorted((root / _FOLDERS[1]).glob("index*")) for name in _CACHE_FILES]
    texts = {str(file.relative_to(root)): _read_text(file) for file in files}
    texts["proc/cpuinfo"] = texts.get("proc/cpuinfo", "").partition("\n\n")[0]
    return {
        "machine": platform.machine(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "usable_cores": count_processors(),
        "texts": {name: text for name, text in texts.items() if text},
    }


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


# -- all of a folder


def measure_folder(folder: PackedFolder, results: Path, announce: Callable[[dict[str, Any]], None]) -> None:
    """Measure what `results` has nothing of yet, one file for each shape set; `announce` is told of each."""
    results.mkdir(parents=True, exist_ok=True)
    outputs = results / "outputs"
    for program, shape_set in folder.list_sets():
        path = results / (shape_set["key"] + ".json")
        if path.exists():
            continue
        row = _measure_set(folder, program, shape_set, outputs)
        draft = path.with_suffix(".unfinished")
        draft.write_text(json.dumps(row), encoding="utf-8")
        draft.replace(path)
        announce(row)


def _measure_set(folder: PackedFolder, program: Record, shape_set: Record, outputs: Path) -> dict[str, Any]:
    row = {"key": shape_set["key"], "artefact": program["artefacts"]["program"], "began": time.time()}
    row.update(name="{} at {}".format(program["name"], shape_set["name"]), load=os.getloadavg())
    try:
        row.update(import_module(program["module"]).measure_set(folder, program, shape_set, OutputFiles(outputs)))
    except (TimingFault, ArithmeticError, MemoryError, LookupError, TypeError, ValueError) as error:
        row["error"] = str(error) if isinstance(error, TimingFault) else f"{type(error).__name__}: {error}"
    if is_ending.is_set():
        time.sleep(60.0)
    row["ended"] = time.time()
    return row


def describe_all(folder: PackedFolder) -> dict[str, Any]:
    """The machine, and the devices that its programs run on."""
    machine = describe_machine()
    for module in sorted({program["module"] for program in folder.manifest["programs"]}):
        machine.update(import_module(module).describe_devices())
    return machine


def write_results(folder: PackedFolder, results: Path) -> Path:
    """One file of all that was measured."""
    rows = []
    for _, shape_set in folder.list_sets():
        path = results / (shape_set["key"] + ".json")
        if path.exists():
            rows.append(json.loads(path.read_text(encoding="utf-8")))
    answer = {"format": FORMAT, "manifest": folder.id, "machine": describe_all(folder), "results": rows}
    draft = results / (RESULTS + ".unfinished")
    draft.write_text(json.dumps(answer, indent=1), encoding="utf-8")
    draft.replace(results / RESULTS)
    return results / RESULTS


# -- over a pipe


def serve_stream() -> None:
    """Take a folder from the standard input, and send what is measured as it comes: lines of JSON, of which those of
    files are followed by bytes. The end of the input is the end of it all."""
    source, target = sys.stdin.buffer, take_answers()
    place = os.path.dirname(os.path.abspath(__file__))  # a folder of its own, which goes when it ends
    _end_on_signals(place)
    try:
        _receive_files(source, Path(place))
        threading.Thread(target=_end_with, args=(source, place), daemon=True).start()
        folder = PackedFolder(Path(place))
        _send_line(target, {"kind": "machine", "machine": describe_all(folder)})
        sent: set[str] = set()

        def announce(row: dict[str, Any]) -> None:
            for check in row.get("checks", ()):
                for digest in set(check["outputs"]) - sent:
                    data = (Path(place) / "results" / "outputs" / digest).read_bytes()
                    _send_line(target, {"kind": "output", "name": digest, "size": len(data)})
                    target.write(data)
                    sent.add(digest)
            _send_line(target, {"kind": "result", "result": row})

        measure_folder(folder, Path(place) / "results", announce)
        _send_line(target, {"kind": "end"})
    except (TimingFault, OSError) as error:
        _send_line(target, {"kind": "failure", "error": f"{error} (in {place})"})
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _end_on_signals(place: str) -> None:
    """Signals that end us end what we started, and remove the folder."""

    def end_all(*_: object) -> None:
        _end_processes(place)

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, end_all)


def _end_processes(place: str) -> None:
    is_ending.set()
    for process in list(running):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    for _ in range(100):  # the other thread may just be writing
        shutil.rmtree(place, ignore_errors=True)
        if not os.path.exists(place):
            break
        time.sleep(0.01)
    os._exit(1)


def _end_with(source: BinaryIO, place: str) -> None:
    while source.read(1):
        pass
    _end_processes(place)


def _receive_files(source: BinaryIO, place: Path) -> None:
    """The first line names the files and their sizes."""
    line = source.readline()
    (place / "files").mkdir(exist_ok=True)
    for name, size in json.loads(line)["files"]:
        if not all(part.replace(".", "").isalnum() for part in name.split("/")):
            raise TimingFault(f"a file that is called {name!r}")
        with open(str(place / name), "wb") as file:
            missing = size
            while missing:
                data = source.read(min(missing, 1 << 20))
                if not data:
                    raise TimingFault("the connection ended before all files had come")
                file.write(data)
                missing -= len(data)


def _send_line(target: BinaryIO, data: Record) -> None:
    target.write(json.dumps(data).encode() + b"\n")


def main() -> int:
    parser = argparse.ArgumentParser(description="Time packed programs on this machine.")
    parser.add_argument("folder", nargs="?", default=".", help="what `opsmith measure --pack` wrote")
    parser.add_argument("--results", help="default: the folder `results` in it")
    parser.add_argument("--stream", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        answers, request = take_answers(), json.loads(sys.stdin.buffer.readline())
        import_module(options.serve).serve_process(request, answers)
    elif options.stream:
        serve_stream()
    else:
        return _measure_here(Path(options.folder), options.results)
    return 0


def _measure_here(path: Path, results: str | None) -> int:
    def announce(row: dict[str, Any]) -> None:
        print("{}: {}".format(row["name"], row.get("error") or "measured"), file=sys.stderr)

    try:
        folder = PackedFolder(path)
        place = Path(results) if results else path / "results"
        measure_folder(folder, place, announce)
        print(write_results(folder, place))
    except KeyboardInterrupt:
        for process in list(running):
            kill_group(process)
        print("stopped; the same command goes on with what is left", file=sys.stderr)
        return 130
    except (TimingFault, OSError) as error:
        print(f"runner: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
