"""The command `opsmith`: each command builds objects, calls one function and prints what it returns.

Results go to stdout, progress and messages to stderr. Every `OpsmithError` ends in its one message and its exit code.
Command modules import nothing heavy before they run, so that `opsmith --help` stays quick.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import typer
from typer.core import TyperGroup

from opsmith.cli import (
    checking,
    experimenting,
    exporting,
    inspecting,
    judging,
    measuring,
    reporting,
    running,
    serving,
    spending,
    starting,
    writing,
)
from opsmith.cli.discreet import end_by_mistake, guard_logs, without_keys
from opsmith.errors import OpsmithError


class _Commands(TyperGroup):
    """All commands, with one place where their errors become messages."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except OpsmithError as error:
            _end(f"{error}", error.exit_code)
        except KeyboardInterrupt:
            _end("interrupted", 130)
        except BrokenPipeError:  # the reader of our output has gone: nothing to say
            raise
        except OSError as error:
            _end(f"{error.filename or 'system'}: {error.strerror or error}", 1)


def _end(message: str, code: int) -> None:
    print(f"opsmith: {without_keys(message)}", file=sys.stderr)
    raise typer.Exit(code)


def _version(wanted: bool) -> None:
    if wanted:
        from opsmith import __version__  # noqa: PLC0415

        print(f"opsmith {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=_Commands,
    help="Agents that write the operator library of a new accelerator, prove every operator right, and learn.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help: rich takes longer to import than all else together
    pretty_exceptions_enable=False,
)


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_version, is_eager=True),
) -> None:
    pass


COMMANDS = (
    inspecting, spending, judging, checking, running, experimenting, reporting, serving, exporting, writing, starting,
    measuring,
)  # fmt: skip
for module in COMMANDS:
    module.add_to(app)


def main() -> None:
    warnings.simplefilter("ignore", SyntaxWarning)  # of a candidate's text: its verdict says what matters
    guard_logs()
    try:
        app(prog_name="opsmith")
    except Exception:
        end_by_mistake()
