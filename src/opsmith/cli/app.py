"""The commands as one typer application: only the modules that are needed are imported, and errors end in one place."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Sequence
from functools import partial, update_wrapper
from importlib import metadata
from typing import Any
from urllib.parse import unquote, urlsplit

import typer
from typer.core import TyperGroup

from opsmith.by_name import import_by_name
from opsmith.cli.commands import CommandApp
from opsmith.cli.completion import ASKED, find_command
from opsmith.cli.discreet import end_by_mistake, guard_logs, without_keys
from opsmith.cli.overview import COMMANDS, MODULES, PURPOSE, find_module, write_overview
from opsmith.errors import OpsmithError, UsageError
from opsmith.terminal import guard_output, interrupt_on_hangup


class _Commands(TyperGroup):
    """All commands, with one place where their errors become messages."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(write_overview())

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except OpsmithError as error:
            _end_command(f"{error}", error.exit_code)
        except KeyboardInterrupt:
            _end_command("interrupted", 130)
        except BrokenPipeError:  # the reader of our output has gone: nothing to say
            raise
        except OSError as error:
            _end_by_target(error)
            problem = "does not exist" if isinstance(error, FileNotFoundError) else error.strerror or error
            _end_command(f"{error.filename or 'system'}: {problem}", 1)
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            _end_by_target(error)
            raise


def _end_by_target(error: Exception) -> None:
    """End with the place in the code of a target of the user's own, where an error came from there."""
    from opsmith.targets.faults import find_fault  # noqa: PLC0415

    fault = find_fault(error)
    if fault is not None:
        _end_command(f"{fault}", fault.exit_code)


def _end_command(message: str, code: int) -> None:
    print(f"opsmith: {without_keys(_name_own_pip(message))}", file=sys.stderr)
    raise typer.Exit(code)


def _name_own_pip(message: str) -> str:
    """The message with extras as they are installed here, where the package came from a folder: by this environment's
    pip, from there."""
    if (advice := "pip install 'opsmith[") not in message:
        return message
    origin = json.loads(metadata.distribution("opsmith").read_text("direct_url.json") or "{}")
    if "dir_info" not in origin:
        return message
    editable = "-e " if origin["dir_info"].get("editable") else ""
    folder = unquote(urlsplit(origin["url"]).path)
    return message.replace(advice, f"{sys.prefix}/bin/pip install {editable}'{folder}[")


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from opsmith import __version__  # noqa: PLC0415

        print(f"opsmith {__version__}")
        raise typer.Exit


def build_app(command: str = "") -> CommandApp:
    """The application with this command; with all of them where there is no such command."""
    app = CommandApp(cls=_Commands, help=" ".join(PURPOSE), add_completion=True, pretty_exceptions_enable=False)
    app.callback()(_read_options)
    module = find_module(command)
    for name in MODULES if module is None else (module,):
        _add_commands(app, name)
    return app


def _add_commands(app: CommandApp, module: str) -> None:
    """The commands of a module; of one that is not here, commands that say so."""
    try:
        import_by_name(module, "opsmith").add_to(app)
    except UsageError:
        anything = {"ignore_unknown_options": True, "allow_extra_args": True}
        for name, (place, line) in COMMANDS.items():
            if place == module:
                refuse = partial(import_by_name, module, f"opsmith {name}")
                app.command(name=name, help=line, context_settings=anything)(update_wrapper(refuse, _do_nothing))


def _build_for_shell() -> CommandApp:
    """The application as far as a shell that asks for completions needs it: no module but that of the command."""
    if command := find_command():
        return build_app(command)
    app = CommandApp(cls=_Commands, help=" ".join(PURPOSE), add_completion=True)
    app.callback()(_read_options)
    for name, (_, line) in COMMANDS.items():
        app.command(name=name, help=line)(_do_nothing)
    return app


def _do_nothing() -> None:
    """In the place of each command, of which only the name is asked."""


def _read_options(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_print_version, is_eager=True),
) -> None:
    pass


def run_command(arguments: Sequence[str]) -> None:
    warnings.simplefilter("ignore", SyntaxWarning)  # of a candidate's text: its verdict says what matters
    guard_output()
    interrupt_on_hangup()
    guard_logs()
    try:
        app = _build_for_shell() if ASKED in os.environ else build_app(*arguments[:1])
        app(arguments, prog_name="opsmith")
    except Exception:
        end_by_mistake()
