"""Which pinned packages have known vulnerabilities? `make audit`: dated, and a release is not made with findings.

Every package of every file given is looked up, by pip-audit, at PyPI's advisory service. Nothing is written. Exit code
0: each was looked up, and nothing is known; 1: findings; 3: the service did not answer, or not for every package, so
that nothing can be said. pip-audit itself calls a package that the service does not know a success; here it is none.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import textwrap
from typing import Any

CLEAN, FOUND, UNKNOWN = 0, 1, 3


def main(files: list[str]) -> int:
    version = _run("--version").stdout.strip()
    print(f"audit of {datetime.datetime.now(datetime.UTC):%Y-%m-%d}, {version}, advisories of PyPI")
    codes = [report(file, *_looked_up(file)) for file in files]
    return FOUND if FOUND in codes else max(codes, default=UNKNOWN)


def report(file: str, found: list[dict[str, Any]] | None, problem: str) -> int:
    """Print what was found for one file; `found` None: nothing came back, and `problem` says why."""
    if found is None:
        print(f"{file}: not audited: {problem or 'no answer'}; try: the same command where https://pypi.org answers")
        return UNKNOWN
    looked_up = [f"{item['name']} {item['version']}" for item in found if "skip_reason" not in item]
    skipped = [item["name"] for item in found if "skip_reason" in item]
    print(f"{file}: {len(looked_up)} of {len(found)} packages looked up")
    if found and not looked_up:
        print(f"  nothing can be said: the service does not answer here ({found[0]['skip_reason']})")
        return UNKNOWN
    for title, names in (("", looked_up), ("not looked up: ", skipped)):
        if names:
            print(textwrap.fill(title + ", ".join(names), 116, initial_indent="  ", subsequent_indent="  "))
    findings = [(item, known) for item in found for known in item.get("vulns", ())]
    for item, known in findings:
        fixed = ", ".join(known.get("fix_versions", ())) or "no version yet"
        print(f"  {item['name']} {item['version']}: {known['id']}: mended in {fixed}")
    print(f"  findings: {len(findings)}")
    return FOUND if findings else UNKNOWN if skipped or not found else CLEAN


def _looked_up(file: str) -> tuple[list[dict[str, Any]] | None, str]:
    done = _run("-r", file, "--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off")
    try:
        return list(json.loads(done.stdout)["dependencies"]), ""
    except (ValueError, KeyError, TypeError):
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return None, lines[-1].strip() if lines else ""


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "pip_audit", *arguments], capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
