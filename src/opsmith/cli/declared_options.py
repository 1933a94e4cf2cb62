"""Options that several commands share, declared once: the parameters of a function that is never called.

    @with_options(declare_tools)
    def improve_on_tasks(experiment: ExperimentFile = None, **shared: Any) -> None: ...

typer reads a command's options from its signature; `shared` holds what is declared elsewhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from opsmith.cli.options import ASKED, LEARNING, MODELS, PLACES, RESULTS, SPENDING, PassEnv, declare_option


def declare_environment(
    pass_env: PassEnv = None,
    name: Annotated[
        str | None,
        declare_option(RESULTS, "NAME", "A name of yours for the run, in place of its id everywhere."),
    ] = None,
) -> None:
    """What agents of the command line see, and what the run is called."""


def declare_tools(
    tools: Annotated[
        str | None,
        declare_option(MODELS, "none|check|all", "What a model may call while it answers; default none."),
    ] = None,
    tool_calls: Annotated[int | None, declare_option(MODELS, "N", "Calls of a sample, at most; default 8.")] = None,
    tool_tokens: Annotated[
        int | None,
        declare_option(SPENDING, "N", "Output of a sample with tools, in all its turns; default 16384."),
    ] = None,
    tool_seconds: Annotated[
        float | None,
        declare_option(PLACES, "S", "Seconds that a sample's tools work, at most; default 120."),
    ] = None,
) -> None:
    """Tools within a sample."""


def declare_planning(
    plan: Annotated[
        str | None,
        declare_option(LEARNING, "none|static|llm", "Who splits tasks that stay unsolved; default none."),
    ] = None,
    planner: Annotated[
        str | None,
        declare_option(MODELS, "M", "The model that plans, with --plan llm; default: the run's own."),
    ] = None,
    plan_after: Annotated[
        int | None,
        declare_option(LEARNING, "N", "Rounds that a task stays unsolved before it is split; default 2."),
    ] = None,
    splits: Annotated[
        int | None,
        declare_option(LEARNING, "N", "Different splits of a task that are tried; default 2."),
    ] = None,
    depth: Annotated[
        int | None,
        declare_option(LEARNING, "N", "Levels that tasks are split down to, at most; default 3."),
    ] = None,
    contract_rounds: Annotated[
        int | None,
        declare_option(LEARNING, "N", "Rounds that a node stays unsolved before its contract is changed; default 1."),
    ] = None,
) -> None:
    """How a task that stays unsolved is split."""


def declare_thinking(
    reasoning: Annotated[
        str | None,
        declare_option(
            MODELS, "low|medium|high", "How much a model reasons, where it may be told; default: nothing is sent."
        ),
    ] = None,
    think: Annotated[
        bool | None,
        typer.Option("--think", help="Ask for a plan in the reply, before the program.", rich_help_panel=MODELS),
    ] = None,
) -> None:
    """How much a model thinks before it answers."""


def declare_showing(
    translate: Annotated[
        str | None,
        declare_option(ASKED, "TARGET|RUN|DIR", "Show a program for the same problem in another language."),
    ] = None,
    example: Annotated[
        bool | None,
        typer.Option(
            "--example/--no-example", help="Show the language's own example; default yes.", rich_help_panel=ASKED
        ),
    ] = None,
) -> None:
    """What a proposer is shown beside its task."""


def with_options(*declarations: Callable[..., None]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds the parameters of the declarations to a command, which finds their values by name in its `**shared`."""

    def extend_command(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True)
        parameters = [entry for entry in own.parameters.values() if entry.kind is not inspect.Parameter.VAR_KEYWORD]
        for declaration in declarations:
            parameters += inspect.signature(declaration, eval_str=True).parameters.values()

        @wraps(command)
        def run_command(**values: Any) -> None:
            command(**values)

        del run_command.__wrapped__  # whose signature typer would read instead
        run_command.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        run_command.__annotations__ = {entry.name: entry.annotation for entry in parameters}
        return run_command

    return extend_command
