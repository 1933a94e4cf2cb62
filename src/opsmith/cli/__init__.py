"""The command `opsmith`: each command builds objects, calls one function and prints what it returns.

Results go to stdout, progress and messages to stderr. Every `OpsmithError` ends in its one message and its exit code.
`opsmith --help` imports no command, and a command imports nothing heavy before it runs.
"""

import sys


def main() -> None:
    """What `sys.argv` asks for."""
    if sys.argv[1:] == ["--help"]:
        from opsmith.cli.overview import write_overview  # noqa: PLC0415

        sys.stdout.write(write_overview())
        return
    from opsmith.cli.app import run_command  # noqa: PLC0415 - imports typer

    run_command(sys.argv[1:])
