"""The 14 blocks are fine as task files: their own programs pass, and their data tell wrong answers from right ones."""

import json

from typer.testing import CliRunner

from opsmith.cli.app import build_app


def test_the_blocks_are_fine() -> None:
    done = CliRunner().invoke(build_app(), ["check", "blocks", "--json"])
    audits = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.exit_code == 0
    assert len(audits) == 14
    assert {audit["state"] for audit in audits} == {"fine"}
