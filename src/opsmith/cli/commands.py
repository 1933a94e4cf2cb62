"""What all commands have: `--wide`, where they print tables, and help in groups of options where there are many."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from itertools import groupby
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from opsmith.terminal import has_wide_tables

MANY = 16  # options, from which on they are shown in groups
OTHERS = "Other options"  # those of no group

WideTables = Annotated[bool, typer.Option("--wide", help="Cut no table to the terminal's width.")]


class GroupedCommand(TyperCommand):
    """A command whose many options are listed in groups: `rich_help_panel` of each names its group."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """As typer does, but with a section for each group, in the order in which their first options stand."""
        options = [param for param in self.get_params(ctx) if param.param_type_name == "option"]
        if sum(param.get_help_record(ctx) is not None for param in options) < MANY:
            super().format_options(ctx, formatter)
            return
        arguments = [param for param in self.get_params(ctx) if param.param_type_name == "argument"]
        for heading, params in (("Arguments", arguments), *_group_options(options)):
            if records := [record for param in params if (record := param.get_help_record(ctx)) is not None]:
                with formatter.section(heading):
                    formatter.write_dl(records)


def _group_options(options: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Those of no group last."""
    names = list(dict.fromkeys(_name_group(param) for param in options))
    names.sort(key=OTHERS.__eq__)
    ordered = sorted(options, key=lambda param: names.index(_name_group(param)))
    yield from ((heading, list(params)) for heading, params in groupby(ordered, _name_group))


def _name_group(param: Any) -> str:
    return getattr(param, "rich_help_panel", None) or OTHERS


class CommandApp(typer.Typer):
    """The application, or a part of it."""

    def __init__(self, **options: Any) -> None:
        plain: dict[str, Any] = {"rich_markup_mode": None}  # rich takes longer to import than all else together
        super().__init__(no_args_is_help=True, **plain, **options)

    def add(self, name: str, command: Callable[..., None], has_tables: bool = True) -> None:
        """A command of that name."""
        self.command(name=name, cls=GroupedCommand)(_offer_wide_tables(command) if has_tables else command)


def _offer_wide_tables(command: Callable[..., None]) -> Callable[..., None]:
    signature = inspect.signature(command, eval_str=True)
    option = inspect.Parameter("wide", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=WideTables)

    @wraps(command)
    def run_command(*, wide: bool, **values: Any) -> None:
        has_wide_tables.set(wide)
        command(**values)

    del run_command.__wrapped__  # whose signature typer would read instead
    parameters = [
        *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in signature.parameters.values()),
        option,
    ]
    run_command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run_command.__annotations__ = {each.name: each.annotation for each in parameters}
    return run_command
