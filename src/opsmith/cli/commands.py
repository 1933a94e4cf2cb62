"""What all commands have: `--wide` where they print tables, `--secret` where they judge, and help in groups of options
where there are many."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import wraps
from itertools import groupby
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

from opsmith.cli.completion import choose_completion
from opsmith.cli.options import ASKED, LEARNING, MODELS, PLACES, REQUESTS, RESULTS, SPENDING
from opsmith.errors import UsageError
from opsmith.terminal import has_wide_tables

MANY = 16  # options, from which on they are shown in groups
OTHERS = "Other options"  # those of no group
GROUPS = (ASKED, MODELS, LEARNING, SPENDING, REQUESTS, PLACES, RESULTS)  # in this order

Secret = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="A number to draw hidden sizes from, in place of a secret of the run's or this installation's.",
        rich_help_panel=PLACES,
    ),
]
WideTables = Annotated[bool, typer.Option("--wide", help="Cut no table to the terminal's width.")]


class GroupedCommand(TyperCommand):
    """A command whose many options are listed in groups: `rich_help_panel` of each names its group."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As typer does; but an option that holds one value and stands twice is refused: the first would be lost."""
        if not ctx.resilient_parsing:
            order = self.make_parser(ctx).parse_args(list(args))[2]
            for param in self.get_params(ctx):
                is_single = isinstance(param, TyperOption) and not (param.multiple or param.is_flag or param.count)
                if is_single and order.count(param) > 1:
                    what = f"{param.opts[0]}: given {order.count(param)} times"
                    raise UsageError(f"{what}; expected once; try: opsmith {ctx.info_name} --help")
        return super().parse_args(ctx, args)

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
    names = list(dict.fromkeys(_name_group(param) for param in options))
    names.sort(key=lambda name: GROUPS.index(name) if name in GROUPS else len(GROUPS))
    ordered = sorted(options, key=lambda param: names.index(_name_group(param)))
    yield from ((heading, list(params)) for heading, params in groupby(ordered, _name_group))


def _name_group(param: Any) -> str:
    return getattr(param, "rich_help_panel", None) or OTHERS


class CommandApp(typer.Typer):
    """The application, or a part of it."""

    def __init__(self, **options: Any) -> None:
        plain: dict[str, Any] = {"rich_markup_mode": None}  # rich takes longer to import than all else together
        plain["context_settings"] = {"help_option_names": ["-h", "--help"]}
        super().__init__(no_args_is_help=True, **plain, **options)

    def add(
        self,
        name: str,
        command: Callable[..., None],
        has_tables: bool = True,
        has_secret: bool = False,
        **options: Any,
    ) -> None:
        """A command of that name; the shell completes tasks, runs, models and languages on its line.

        A parameter that is a dataclass stands for options which commands share, one for each of its fields.
        """
        own = inspect.signature(command, eval_str=True).parameters.values()
        records: dict[str, Any] = {each.name: each.annotation for each in own if is_dataclass(each.annotation)}
        parameters = []
        for parameter in own:
            record = inspect.signature(records[parameter.name], eval_str=True) if parameter.name in records else None
            offered = [parameter] if record is None else record.parameters.values()
            parameters += [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in offered]
        for info in (info for each in parameters for info in getattr(each.annotation, "__metadata__", ())):
            info.autocompletion = choose_completion(info.metavar or "")
        if has_tables:
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(inspect.Parameter("wide", kind, default=False, annotation=WideTables))
        if has_secret:
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(inspect.Parameter("secret", kind, default=None, annotation=Secret))
        self.command(name=name, cls=GroupedCommand, **options)(_state_parameters(command, parameters, records))


def _state_parameters(
    command: Callable[..., None], parameters: list[inspect.Parameter], records: Mapping[str, Any]
) -> Callable[..., None]:
    """The command with a signature of its own, for typer to read; `wide` and `secret` are not the command's, and
    options that are fields of the dataclasses `records` are handed to it as those."""

    @wraps(command)
    def run_command(wide: bool = False, secret: str | None = None, **values: Any) -> None:
        has_wide_tables.set(wide)
        if secret is not None:
            from opsmith.judging.installation import state_secret  # noqa: PLC0415 - few commands judge

            state_secret(secret)
        for name, record in records.items():
            values[name] = record(**{field.name: values.pop(field.name) for field in fields(record)})
        command(**values)

    del run_command.__wrapped__  # whose signature typer would read instead
    run_command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run_command.__annotations__ = {each.name: each.annotation for each in parameters}
    return run_command
