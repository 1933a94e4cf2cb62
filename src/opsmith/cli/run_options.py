"""The options of a run, each a field of `opsmith.settings.Settings`: its kind, its group of the help, and its words.

    @offer_settings("models tasks samples")
    def improve_on_tasks(stated: Mapping[str, Any], out: Out = Path("runs")) -> None: ...

typer sees an option for each field, after the command's own; the command is handed those that were given, by their
fields, as `stated`. Kinds stand here too, since importing the fields takes as long as all of `--help`: a test holds
both equal, and the defaults that the words tell.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any

from opsmith.cli.options import (
    ASKED,
    LEARNING,
    MODELS,
    PLACES,
    REQUESTS,
    RESULTS,
    SPENDING,
    CandidateSeconds,
    TargetName,
    TargetOptions,
    TrialSeconds,
    TrustTasks,
    declare_option,
    read_target_options,
)


def _option(kind: Any, panel: str, metavar: str | None, text: str, *names: str) -> Any:
    """The annotation of an option; without a metavar it is a switch. `names`: where they are not the field's."""
    return Annotated[kind | None, declare_option(panel, metavar, text, *names)]


SETTINGS: Mapping[str, Any] = {
    "tasks": _option(
        list[str],
        ASKED,
        "IDS|DIR",
        "Ids, files or folders, separated by commas, or given several times; default: the 26 of the paper.",
    ),
    "target": TargetName,
    "target_options": TargetOptions,
    "prompt": _option(
        str, ASKED, "structural|bare", "How tasks are written; bare: in plain Python; default structural."
    ),
    "translate": _option(
        str, ASKED, "TARGET|RUN|DIR", "Show a program for the same problem in another language, from there."
    ),
    "known": _option(
        str, ASKED, "DIR", "Programs that you have: judged first, then shown; they go before those of --from."
    ),
    "show_known": _option(
        bool, ASKED, None, "The control of --known: neither judge nor show them.", "--show-known/--no-known"
    ),
    "example": _option(bool, ASKED, None, "Show the language's own example; default yes.", "--example/--no-example"),
    "manual": _option(
        list[str], ASKED, "FILE", "The language's manual (.md, .txt, .html, .pdf); may be given several times."
    ),
    "manual_tokens": _option(int, ASKED, "N", "Tokens of a prompt for it; default 3000, or the language file's."),
    "manual_sections": _option(
        str, ASKED, "likeliest|random|all|none", "What prompts quote of it; default likeliest, the others are controls."
    ),
    "profiles": _option(list[str], ASKED, "NAME", "What the analyst is shown: auto, none, or profilers."),
    "profile_command": _option(str, ASKED, "COMMAND", "Your own profiler: its text and PNG files are shown."),
    "memory": _option(int, ASKED, "N", "Changes to other tasks' programs that a prompt shows; default 2."),
    "memory_from": _option(list[str], ASKED, "RUN", "Show changes of that run too; may be given several times."),
    "example_pair": _option(bool, ASKED, None, "Show the language's example of a change.", "--example/--no-example"),
    "reference": _option(
        str, ASKED, "TARGET|RUN|DIR", "Show a program for the same problem in another language, from there."
    ),
    "instructions": _option(str, ASKED, "FILE|DIR", "Instructions of your own, which every prompt holds."),
    "sources": _option(
        list[str], ASKED, "FILE", "A file that the generator is shown; may be given several times.", "--source"
    ),
    "models": _option(list[str], MODELS, "M", "A name that `opsmith models` lists; several may be given.", "--model"),
    "model": _option(str, MODELS, "M", "The generator; a name of `opsmith models`."),
    "analyst": _option(str, MODELS, "M|none", "Who suggests what to change; default: the same model."),
    "base_url": _option(str, MODELS, "U", "The address of a server of your own, such as http://127.0.0.1:8000/v1."),
    "analyst_url": _option(str, MODELS, "U", "The address of another server, for the analyst."),
    "servers": _option(list[str], MODELS, "NAME=URL", "A server of your own for one of the models.", "--server"),
    "policy": _option(
        str, MODELS, "P", "Which of several models makes a sample: each|cheapest-first|bandit; default each."
    ),
    "guardian_model": _option(
        str, MODELS, "M", "The model that repairs programs, with --guardian llm; default: the sample's own."
    ),
    "agents": _option(str, MODELS, "single|agent", "Without the guardian, or with it; default agent."),
    "guardian": _option(str, MODELS, "static|llm", "The guardian repairs by rules, or asks a model; default static."),
    "planner": _option(str, MODELS, "M", "The model that plans, with --plan llm; default: the run's own."),
    "tools": _option(str, MODELS, "none|check|all", "What a model may call while it answers; default none."),
    "tool_calls": _option(int, MODELS, "N", "Calls of tools in a sample, at most; default 8."),
    "reasoning": _option(
        str, MODELS, "low|medium|high", "How much a model is told to reason; default: it is told nothing."
    ),
    "think": _option(bool, MODELS, None, "Ask for a plan in the reply, before the program.", "--think"),
    "samples": _option(int, LEARNING, "N", "Samples of each task, in a round and at a temperature; default 64."),
    "temperatures": _option(
        list[float], LEARNING, "T", "A sampling temperature; may be given several times.", "--temperature"
    ),
    "levels": _option(int, LEARNING, "m", "Levels of difficulty that demonstrations are sorted into; default 3."),
    "selection": _option(
        str, LEARNING, "S", "Which demonstrations are shown: adaptive|gain|all|random|similar|none (the control)."
    ),
    "repair": _option(int, LEARNING, "K", "Turns in which a refused program goes back with its findings; default 0."),
    "from_run": _option(
        str,
        LEARNING,
        "RUN",
        "Start from the solutions of that run; --known goes before.",
        "--from",
    ),
    "seed": _option(int, LEARNING, "S", "The seed of all that is drawn; default 0."),
    "max_rounds": _option(int, LEARNING, "N", "Rounds at most; default: until nothing is left to try."),
    "measure": _option(str, LEARNING, "none|screen|full", "Time each solution, in that grade; default none."),
    "optimise": _option(int, LEARNING, "N", "Rounds at most that make solutions better; default 0."),
    "plan": _option(str, LEARNING, "none|static|llm", "Who splits tasks that stay unsolved; default none."),
    "plan_after": _option(int, LEARNING, "N", "Rounds that a task stays unsolved before it is split; default 2."),
    "splits": _option(int, LEARNING, "N", "Different splits of a task that are tried; default 2."),
    "depth": _option(int, LEARNING, "N", "Levels that tasks are split down to, at most; default 3."),
    "contract_rounds": _option(
        int, LEARNING, "N", "Rounds that a node stays unsolved before its contract is changed; default 1."
    ),
    "objective": _option(str, LEARNING, "O", "time, cycles, on_chip_bytes, off_chip_bytes or front."),
    "beam": _option(int, LEARNING, "N", "Programs of a task that a round starts from; default 1."),
    "attempts": _option(int, LEARNING, "N", "Attempts of a round at each of these programs; default 4."),
    "fixes": _option(int, LEARNING, "N", "Turns in which a wrong program goes back with its findings; default 1."),
    "refine": _option(
        bool, LEARNING, None, "Start from the best so far, or always from the first.", "--refine/--resample"
    ),
    "plateau": _option(int, LEARNING, "N", "Rounds without a gain after which a task is left alone; default 2."),
    "deny": _option(list[str], LEARNING, "REGEX", "No program may match this pattern; may be given several times."),
    "allow": _option(list[str], LEARNING, "REGEX", "Exceptions to --deny; may be given several times."),
    "budget_from": _option(str, SPENDING, "RUN", "Spend as many samples as that run (with --selection none)."),
    "tokens_from": _option(
        str, SPENDING, "RUN", "Spend as many tokens as that run (with --selection none, or optimising)."
    ),
    "max_cost": _option(float, SPENDING, "USD", "US dollars; once they are spent, no request starts."),
    "price_in": _option(float, SPENDING, "USD", "US dollars of a million tokens read, at a server of your own."),
    "price_out": _option(float, SPENDING, "USD", "US dollars of a million tokens written, at a server of your own."),
    "max_measured": _option(float, SPENDING, "S", "Seconds of measuring, at most."),
    "tool_tokens": _option(
        int, SPENDING, "N", "Output tokens of a sample with tools, in all its turns; default 16384."
    ),
    "completions": _option(
        int, REQUESTS, "N", "Samples that one request asks for, which saves input tokens; default 1."
    ),
    "concurrency": _option(int, REQUESTS, "N", "Requests in flight, at most."),
    "requests_per_minute": _option(int, REQUESTS, "N", "Requests a minute that your account allows."),
    "tokens_per_minute": _option(int, REQUESTS, "N", "Tokens a minute that your account allows."),
    "request_timeout": _option(float, REQUESTS, "S", "Seconds that one attempt may take; default 300."),
    "request_deadline": _option(
        float, REQUESTS, "S", "Seconds of a request, with all attempts and waits; default 900."
    ),
    "context_window": _option(
        int, REQUESTS, "N", "Tokens that a request and its reply may have together; default: as listed for the model."
    ),
    "batch": _option(
        bool, REQUESTS, None, "Use the provider's batch API: half the price, hours of waiting.", "--batch"
    ),
    "executor": _option(str, PLACES, "local|ray", "Work on this machine, or on those of a Ray cluster; default local."),
    "ray_address": _option(str, PLACES, "A", "The cluster's HOST:PORT, or auto; default: a Ray of this run's own."),
    "workers": _option(
        int, PLACES, "N", "Verifier processes on each machine, and as many of the embedded model; default 2."
    ),
    "candidate_seconds": CandidateSeconds,
    "trial_seconds": TrialSeconds,
    "trust_tasks": TrustTasks,
    "pass_env": _option(
        list[str],
        PLACES,
        "NAME",
        "An environment variable that models of `command:` see too; may be given several times.",
        "--pass-env",
    ),
    "name": _option(str, RESULTS, "NAME", "A name of your own for the run, which stands for its id everywhere."),
    "tool_seconds": _option(float, PLACES, "S", "Seconds that a sample's tools work, at most; default 120."),
}


def offer_settings(fields: str, **others: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds options for these fields to a command; `others`: annotations of its own for fields, in their place."""
    offered = {field: others.get(field, SETTINGS.get(field)) for field in fields.split()}
    kind = inspect.Parameter.KEYWORD_ONLY

    def extend_command(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        own = [parameter for name, parameter in signature.parameters.items() if name != "stated"]
        parameters = own + [inspect.Parameter(name, kind, default=None, annotation=offered[name]) for name in offered]

        @wraps(command)
        def run_command(**values: Any) -> None:
            given = {name: value for name in offered if (value := values.pop(name)) not in (None, [])}
            command(stated={name: _read_value(name, value) for name, value in given.items()}, **values)

        del run_command.__wrapped__  # whose signature typer would read instead
        run_command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run_command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run_command

    return extend_command


def _read_value(field: str, value: Any) -> Any:
    """As the field has it."""
    if field == "target_options":
        return read_target_options(value)
    if field == "tasks":
        return tuple(filter(None, ",".join(value).split(",")))
    return tuple(value) if isinstance(value, list) else value
