"""How many whole networks come in: `python experiments/networks.py [OPTION...] > experiments/networks.md`

The fifty networks of `tests/imports/networks.py` are imported as files of KernelBench's form; the options are those of
`opsmith import kernelbench`. The table says what became of each.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from imports.networks import NETWORKS, write_network


def import_networks(options: list[str]) -> dict:
    """The report of `opsmith import kernelbench --json` on all of them."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "level3")
        folder.mkdir()
        for number, name in enumerate(NETWORKS, 1):
            (folder / f"{number}_{name}.py").write_text(write_network(name))
        command = [sys.executable, "-m", "opsmith", "import", "kernelbench", place, "--out", f"{place}/out", "--json"]
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
        if not done.stdout:
            sys.exit(done.stderr)
        return json.loads(done.stdout)


def write_table(report: dict, options: list[str]) -> str:
    """The report in Markdown: the count, then a row for each network."""
    rows = ["| network | came in | as it is, or why not |", "|---|---|---|"]
    for file in report["files"]:
        name = Path(file["file"]).stem.partition("_")[2]
        size = file["bytes_to"]
        notes = [f"{size / 2**20:.1f} MiB" if size is not None else "", *file["warnings"]]
        text = file["refusal"] or "; ".join(filter(None, notes))
        rows.append(f"| {name} | {'no' if file['refusal'] else 'yes'} | {text.replace('|', '/')} |")
    command = " ".join(["opsmith import kernelbench", *options])
    head = f"{report['imported']} of {len(report['files'])} came in, in {report['seconds']:.0f} s (`{command}`)."
    return "\n".join([head, "", *rows]) + "\n"


if __name__ == "__main__":
    print(write_table(import_networks(sys.argv[1:]), sys.argv[1:]), end="")
