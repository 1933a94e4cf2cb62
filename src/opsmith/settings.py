"""The settings of one run, in groups: what the command line and a TOML file of settings fill in.

Outside of this file a setting has one flat name: an option, a key of a settings file, `Settings(samples=8)`, a key of a
store's JSON. Inside it has a group, so that a function can take the group that is its business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from math import inf
from operator import getitem
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

Temperature = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]  # of a verdict: `verification.limits`
COMMAND = "command:"  # begins the name of a model that is a program of the user's own
NAMING_MODELS = ("model", "models", "analyst", "planner", "guardian_model")  # the settings that name one
OptionValue = str | int | float | bool | tuple[str, ...]


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Provider(_Group):
    """Which model is asked, and how its requests are sent."""

    model: str = "embedded"  # a name that `opsmith models` lists
    base_url: str | None = None  # an OpenAI- or Anthropic-compatible server of the user's own
    completions: int = Field(default=1, ge=1)  # samples that one request of the proposer asks for, where it may
    concurrency: int = Field(default=16, ge=1)  # requests in flight
    request_timeout: float = Field(default=300.0, gt=0, allow_inf_nan=False)  # s, of one attempt
    request_deadline: float = Field(default=900.0, validate_default=True)  # s, of all attempts and waits of a request
    batch: bool = False  # hand requests in to the provider's batch API: half the price, hours of waiting
    requests_per_minute: int | None = Field(default=None, ge=1)  # a provider's limit; None: as it answers
    tokens_per_minute: int | None = Field(default=None, ge=1)
    context_window: int | None = Field(default=None, ge=1)  # tokens; None: as listed. It has a say in the result
    price_in: float | None = Field(default=None, ge=0, allow_inf_nan=False)  # USD for a million tokens read, and for
    price_out: float | None = Field(default=None, ge=0, allow_inf_nan=False, validate_default=True)  # those written

    @field_validator("request_deadline")
    @classmethod
    def _holds_an_attempt(cls, value: float, info: ValidationInfo) -> float:
        timeout = info.data.get("request_timeout", 0.0)  # absent: it is wrong itself, which is said
        if not timeout <= value < inf:
            raise ValueError(f"a number of seconds from request_timeout ({timeout:g}) on")
        return value

    @field_validator("price_out")
    @classmethod
    def _belongs_to_price_in(cls, value: float | None, info: ValidationInfo) -> float | None:
        if (value is None) != (info.data.get("price_in") is None):
            raise ValueError("USD for a million tokens, with price_in and price_out both stated or neither")
        return value


class Method(_Group):
    """How tasks are solved. All of it has a say in the result."""

    samples: int = Field(default=64, ge=1)  # per task, round and temperature
    temperatures: tuple[Temperature, ...] = Field(default=(0.4, 0.7, 1.0), min_length=1)
    levels: int = Field(default=3, ge=1)  # m of Algorithm 1: the number of difficulty bins
    agents: Literal["single", "agent"] = "agent"  # the proposer alone, or proposer and guardian
    guardian: Literal["static", "llm"] = "static"
    prompt: Literal["structural", "bare"] = "structural"  # bare: without structural IR, in the host language (Python)
    selection: Literal["adaptive", "gain", "all", "random", "similar", "none"] = "adaptive"  # none: no demonstrations
    repair: int = Field(default=0, ge=0)  # turns in which a refused candidate's errors go back to the proposer
    max_rounds: int | None = Field(default=None, ge=1)
    max_tokens: int = Field(default=1024, ge=1, lt=2**31)  # output tokens of one reply
    noise: float = Field(default=0.0, ge=0.0, le=1.0)  # embedded only: share of replies spoiled as real models do
    from_run: str | None = None  # a finished run whose experiences are where this one starts


class Spending(_Group):
    """How much a run may cost."""

    max_cost: float | None = Field(default=None, gt=0)  # USD; the run stops cleanly before it would cost more
    budget_from: str | None = None  # spend the same total of samples as that run (with selection = none)
    tokens_from: str | None = None  # spend as many input and output tokens as that run (with selection = none)


class Measuring(_Group):
    """What is measured of the programs that are kept. It has no say in which they are."""

    measure: Literal["none", "screen", "full"] = "none"  # beside the task's own program, at each round's end
    max_measured: float | None = Field(default=None, gt=0)  # s of measuring; the run stops cleanly after that


class Optimisation(_Group):
    """How right programs are made better, in rounds after those that solve tasks. All of it has a say in the result."""

    optimise: int = Field(default=0, ge=0)  # rounds at most; 0: no program is made better than right
    objective: str = "auto"  # the usual one; another figure that the language says, or front: all of them
    beam: int = Field(default=1, ge=1)  # programs of a task that a round starts from
    attempts: int = Field(default=4, ge=1)  # samples of a round for each of them
    fixes: int = Field(default=1, ge=0)  # turns in which a wrong program goes back with its findings
    refine: bool = True  # False: every attempt starts from the program that the task was solved with
    plateau: int = Field(default=2, ge=1)  # rounds without a gain beyond the noise, after which a task is left alone
    analyst: str | None = None  # the model that suggests; None: that of `model`, "none": nobody suggests
    analyst_url: str | None = (
        None  # its server; None: that of `base_url` if it is of the same family, or its provider's
    )
    profiles: tuple[str, ...] = ("auto",)  # what the analyst is shown: auto, none, or names
    profile_command: str | None = None  # of the user's own, whose text and pictures are shown to the analyst


class Generation(_Group):
    """What a model is shown that makes a right program better, and what it may not write."""

    memory: int = Field(default=2, ge=0)  # changes to other tasks' programs that a prompt shows, with what they gained
    memory_from: tuple[str, ...] = ()  # runs whose changes are remembered too
    example_pair: bool = True  # show the language's own example of a slow and a fast program
    reference: str | None = None  # a target, run or library whose program for the same problem is shown
    instructions: str | None = None  # a file, or a folder of files by round
    sources: tuple[str, ...] = ()  # files that the generator is shown
    deny: tuple[str, ...] = ()  # regular expressions that no program may match
    allow: tuple[str, ...] = ()  # regular expressions within whose matches it may


class Planning(_Group):
    """How a task that stays unsolved is split into smaller ones. All of it has a say in the result."""

    plan: Literal["none", "static", "llm"] = "none"
    planner: str | None = None  # the model that plans, with plan = llm; None: that of `model`
    plan_after: int = Field(default=2, ge=0)  # rounds that a task stays unsolved before it is split
    splits: int = Field(default=2, ge=1)  # different ones of a task, or of a part, that are tried
    depth: int = Field(default=3, ge=1)  # of the tree
    contract_rounds: int = Field(default=1, ge=1)  # that a part stays unsolved before its contract is changed


class Tooling(_Group):
    """Which tools the proposer may call within a sample, and how much of them. All of it has a say in the result."""

    tools: Literal["none", "check", "all"] = "none"
    tool_calls: int = Field(default=8, ge=1)  # of a sample
    tool_tokens: int = Field(default=16_384, ge=1, lt=2**31)  # output tokens of a sample, all turns together
    tool_seconds: float = Field(default=120.0, gt=0, allow_inf_nan=False)  # of a sample's tools at work


class Thinking(_Group):
    """How much a model thinks before it answers. It has a say in the result."""

    reasoning: Literal["low", "medium", "high"] | None = None  # as the provider spells it; None: nothing is asked for
    think: bool = False  # ask for a plan in the reply, before the program


class Showing(_Group):
    """What the proposer is shown beside its task. It has a say in the result."""

    translate: str | None = None  # a target, run or library whose program for the same problem is shown
    example: bool = True  # show the language's own example of a task with its program
    manual: tuple[str, ...] = ()  # files of the language's manual, in place of those that its own file names
    manual_tokens: int | None = Field(default=None, ge=100, le=1_000_000)  # of a prompt; None: as the language says
    manual_sections: Literal["likeliest", "random", "all", "none"] = "likeliest"  # the others are controls
    known: str | None = None  # a library or a folder with programs of people's, which are judged and then shown
    show_known: bool = True  # False, the control: they are neither judged nor shown, and their tasks are not asked for


class Team(_Group):
    """Several models in one run. All of it but `pass_env` has a say in the result."""

    models: tuple[str, ...] = ()  # the proposers; (): `model` alone
    policy: Literal["each", "cheapest-first", "bandit"] = "each"  # who makes which sample
    servers: tuple[str, ...] = ()  # NAME=URL: a server of the user's own for one of the models
    guardian_model: str | None = None  # None: that of `model`
    pass_env: tuple[str, ...] = ()  # variables that agents of the command line see, beside the usual ones

    @field_validator("models")
    @classmethod
    def _are_several(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(value) == 1 or len(set(value)) < len(value):
            raise ValueError("each model once; in a settings file two or more")
        return value


class Teamwork(_Group):
    """How agents plan, use tools, think and work together, and what a proposer is shown."""

    planning: Planning = Planning()
    tooling: Tooling = Tooling()
    thinking: Thinking = Thinking()
    showing: Showing = Showing()
    team: Team = Team()


class Place(_Group):
    """Where the work is done, what of others may run there, for how long, and what people call the run."""

    workers: int = Field(default=2, ge=1)  # verifier processes, and as many of the embedded model, on each machine
    executor: Literal["local", "ray"] = "local"  # where the embedded model samples and candidates are judged
    ray_address: str | None = None  # of the cluster's head, or auto; None: a Ray on this machine, for the run
    trust_tasks: bool = False  # run tasks that are not bundled even where nothing isolates them
    candidate_seconds: Seconds = 60.0  # of one candidate, over all its trials
    trial_seconds: Seconds = 10.0  # of each of its trials, where candidates are executed
    name: str | None = None  # what stands for the run's id wherever a run is asked for; None: as it is


class Settings(_Group):
    """Resolved settings; saved beside the results of every run (keys never are).

    Made from flat names: `Settings(samples=8, model="search").method.samples == 8`.
    """

    tasks: tuple[str, ...] = ()  # task ids, files or folders; empty: the 26 tasks of the paper
    target: str | None = None  # the language that is asked for; None: that of each task file
    target_options: Mapping[str, OptionValue] = {}  # how it builds and runs programs, by names that it knows
    seed: int = Field(default=0, ge=-(2**63), lt=2**63)
    provider: Provider = Provider()
    method: Method = Method()
    spending: Spending = Spending()
    measuring: Measuring = Measuring()
    optimisation: Optimisation = Optimisation()
    generation: Generation = Generation()
    teamwork: Teamwork = Teamwork()
    place: Place = Place()

    def __init__(self, **values: Any) -> None:  # so that type checkers take flat names too
        super().__init__(**values)

    def __hash__(self) -> int:
        others = (value for name, value in self if name != "target_options")
        return hash((frozenset(self.target_options.items()), *others))

    @model_validator(mode="before")
    @classmethod
    def _gather_groups(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Put each flat name into its group. A name that no group has stays where it is, to be refused."""
        if values.get("models"):
            values = {
                **values,
                "model": values["models"][0],
            }  # the run's own: what is asked of no other is its business
        grouped = {name: value for name, value in values.items() if not PATH_OF.get(name)}
        for name in values.keys() - grouped.keys():
            _put_value(grouped, (*PATH_OF[name], name), values[name])
        return grouped

    def as_flat(self, mode: Literal["python", "json"] = "python") -> dict[str, Any]:
        """Every setting by its flat name; mode json: as plain JSON data."""
        dumped = self.model_dump(mode=mode)
        return {name: reduce(getitem, (*PATH_OF.get(name, ()), name), dumped) for name in NAMES}

    def replace(self, **values: Any) -> Settings:
        """The same settings but for these flat names."""
        return Settings(**{**self.as_flat(), **values})


def find_command(stated: Mapping[str, Any]) -> str:
    """Which of some settings, by their flat names, has a program of the user's own executed as a model; "": none.

    >>> find_command({"model": "embedded", "models": ["swarm:tuner,command:sh"]})
    'models'
    """
    return next((name for name in NAMING_MODELS if COMMAND in str(stated.get(name))), "")


def _put_value(nested: dict[str, Any], path: Sequence[str], value: Any) -> None:
    for name in path[:-1]:
        inner = nested.get(name, {})
        nested[name] = dict(inner)  # a copy: of a mapping or of a group
        nested = nested[name]
    nested[path[-1]] = value


def _list_settings(kind: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each setting of a group and of the groups in it, with the groups' names from the outermost on."""
    for name, member in kind.model_fields.items():
        inner = member.annotation
        if isinstance(inner, type) and issubclass(inner, _Group):
            yield from _list_settings(inner, (*path, name))
        else:
            yield name, path


PATH_OF: Mapping[str, tuple[str, ...]] = dict(_list_settings(Settings))  # the groups that a flat name lies in
NAMES = tuple(sorted(PATH_OF, key=lambda name: not PATH_OF[name]))  # of all settings, flat
