"""Hashes of all that a change of structure must leave as it is: texts, verdicts, results and stores of before.

    python tests/fingerprint.py > before.json                      # some 12 minutes; --only oracles,mutants: less
    python tests/fingerprint.py --against before.json              # exit code 1 where something differs

Only public ways in are used (commands, `import opsmith`, the tables of a store), so that the same script runs before
and after any move. Messages hold numbers that differ between processors: compare on one machine. Clock times are left
out, and so is the name of the verifier's version with `--any-verifier`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "tests/fixtures/stores"
CLOCKS = {"seconds", "wall_s", "started", "elapsed", "at"}
UNFINISHED = [
    "--tasks",
    "attn_1,gemm_2,rope_1",
    "--samples",
    "12",
    "--temperature",
    "1.0",
    "--seed",
    "2",
    "--max-rounds",
    "1",
]

SAMPLES = """
select request.task, request.round, request.temperature, request.number, request.agent, request.seed, reply.texts
from request join reply on reply.run = request.run and reply.request = request.id
where request.run = ? order by 1, 2, 3, 4, 5"""
VERDICTS = """
select verdict.sample, verdict.candidate, verdict.final, body.body
from verdict join text body on body.hash = verdict.body where verdict.run = ? order by 1, 2"""


SECRET = "1"  # of every hidden size


def main() -> int:
    options = read_options()
    parts = {name: part for name, part in PARTS.items() if not options.only or name in options.only.split(",")}
    hashes: dict[str, str] = {}
    for name, part in parts.items():
        for label, data in part():
            hashes[f"{name} {label}".strip()] = hash_json(without_clocks(data, options.any_verifier))
            print(f"{name} {label}", hashes[f"{name} {label}".strip()][:16], file=sys.stderr, flush=True)
    print(json.dumps(hashes, indent=1))
    return compare(json.loads(Path(options.against).read_text("utf-8")), hashes) if options.against else 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help=f"some of {','.join(PARTS)}")
    parser.add_argument("--against", help="hashes of before")
    parser.add_argument("--any-verifier", action="store_true", help="the version of the verifier may differ")
    return parser.parse_args()


def compare(before: dict[str, str], after: dict[str, str]) -> int:
    """Say what differs among the parts that both have; 1 if anything does."""
    common = [name for name in after if name in before]
    different = [name for name in common if before[name] != after[name]]
    print(f"{len(common) - len(different)} of {len(common)} equal", *different, sep="\n  differs: ", file=sys.stderr)
    return 1 if different or not common else 0


# -- what is hashed


def read_oracles() -> Iterator[tuple[str, Any]]:
    """The verdicts on the bundled tasks' own programs."""
    lines = run_command("verify", "step26", "step_extra", "--json").splitlines()
    yield "", [json.loads(line) for line in lines]


def read_mutants() -> Iterator[tuple[str, Any]]:
    """The verdicts on the 300 wrong programs and functions."""
    code = "from fingerprint import judge_mutants; judge_mutants()"
    yield "", json.loads(run_python("-c", code))


def judge_mutants() -> None:
    import yaml
    from suites.mutants import mutants

    import opsmith
    from opsmith.judging.installation import state_secret
    from opsmith.records import Level

    state_secret(SECRET)
    verdicts = []
    with tempfile.TemporaryDirectory() as folder:
        for number, mutant in enumerate(mutants()):
            own = opsmith.load_task(mutant.task)
            file = {**yaml.safe_load(own.text), "impl": own.impl, "test_name": mutant.task}
            path = Path(folder) / f"mutant_{number}.yaml"
            path.write_text(yaml.safe_dump(mutant.applied(file), sort_keys=False), "utf-8")
            task = opsmith.load_task(path)
            verdict = opsmith.verify(task, task.impl or "", level=Level.CHEAP)
            verdicts.append([str(mutant), verdict.stage.name, str(verdict.outcome), verdict.trials, verdict.message])
    print(json.dumps(verdicts))


def read_samples() -> Iterator[tuple[str, Any]]:
    """The embedded model's texts and their verdicts in the main run, seeds 0, 1 and 2."""
    with tempfile.TemporaryDirectory() as folder:
        for seed in ("0", "1", "2"):
            arguments = ["experiments/main.toml", "--seed", seed, "--secret", SECRET]
            arguments += ["--out", folder, "--no-report", "--json"]
            run = json.loads(run_command("run", *arguments))["run"]
            yield from read_run(Path(folder) / "opsmith.sqlite", run, f"seed {seed}")


def read_mutation() -> Iterator[tuple[str, Any]]:
    """The counts of the mutation benchmark."""
    yield "", json.loads(run_command("bench", "mutation", "--secret", SECRET, "--json"))


def read_results() -> Iterator[tuple[str, Any]]:
    """The committed results of the experiments."""
    files = sorted(path for path in (ROOT / "experiments/results").rglob("*") if path.is_file())
    yield "", [[path.name, hashlib.sha256(path.read_bytes()).hexdigest()] for path in files]


def read_stores() -> Iterator[tuple[str, Any]]:
    """Stores of earlier versions: they open, are read, are reported, and an unfinished run goes on."""
    for packed in sorted(FIXTURES.glob("*.sqlite.xz")):
        version = packed.name.partition(".")[0]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "opsmith.sqlite"
            path.write_bytes(lzma.decompress(packed.read_bytes()))
            runs = json.loads(run_command("runs", "--out", folder, "--json"))
            yield f"{version} runs", runs
            for run in (row["run"] for row in runs):
                yield f"{version} csv {run}", run_command("report", run, "--format", "csv", "-o", "-", "--out", folder)
                yield from read_run(path, run, f"{version} {run}")
            resumed = json.loads(run_command("run", *UNFINISHED, "--out", folder, "--json"))
            yield from read_run(path, resumed["run"], f"{version} resumed")


PARTS: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    "oracles": read_oracles,
    "mutants": read_mutants,
    "stores": read_stores,
    "results": read_results,
    "samples": read_samples,
    "mutation": read_mutation,
}

# -- how


def read_run(store: Path, run: str, label: str) -> Iterator[tuple[str, Any]]:
    with closing(sqlite3.connect(store)) as connection:
        yield f"{label} texts", connection.execute(SAMPLES, [run]).fetchall()
        verdicts = connection.execute(VERDICTS, [run]).fetchall()
        yield f"{label} verdicts", [[*names, json.loads(body)] for *names, body in verdicts]


def run_command(*arguments: str) -> str:
    return run_python("-m", "opsmith", *arguments)


def run_python(*arguments: str) -> str:
    """What a Python process prints; its standard error goes to ours where it fails."""
    code = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r}); exec(sys.argv.pop(1))"]
    command = [*code, *arguments[1:]] if arguments[0] == "-c" else [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        raise SystemExit(f"{' '.join(arguments)[:200]}: exit code {done.returncode}")
    return done.stdout


def without_clocks(data: Any, any_verifier: bool) -> Any:
    """Plain data less what a clock said."""
    if isinstance(data, dict):
        dropped = CLOCKS | ({"verifier"} if any_verifier else set())
        return {key: without_clocks(value, any_verifier) for key, value in data.items() if key not in dropped}
    return [without_clocks(item, any_verifier) for item in data] if isinstance(data, list | tuple) else data


def hash_json(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
