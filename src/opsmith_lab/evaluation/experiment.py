"""The parts of an experiment file as records; `reading` makes them from TOML.

An arm is one way to solve the tasks: settings of a run, over those of all arms. Four things an arm may say of another
one of the same file: `budget_from` and `tokens_from` name an arm whose run is the measure, `from_run` one whose right
programs it begins with, for the tasks that have one, `first_round_of` an arm whose first round is this arm (the same
samples, so that nothing is paid for twice), and `learns_from` one whose programs are shown, as `shows` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from opsmith.settings import NAMES, Settings, find_command
from opsmith_lab.evaluation.showing import DEMONSTRATIONS, FEEDBACK

SEARCH = "search"
TUNER = "tuner"
EMBEDDED = ("embedded", SEARCH, TUNER)  # what is no language model: [embedded] settings hold for these
MEASURES = ("budget_from", "tokens_from")
BY_ARM = (*MEASURES, "from_run")  # settings that name a run: in an experiment file, another arm
NOT_HERE = {
    "model": "a [[model]] table, or an arm's own",
    "seed": "seeds = [...]",
    "tasks": "tasks = [...] at the top",
    "trust_tasks": "the option --trust-tasks",
    "base_url": "the option --base-url: your key is sent there",
    "analyst_url": "the option --analyst-url of opsmith optimise: your key is sent there",
    "profile_command": "the option --profile-command of opsmith optimise: it is executed, with your rights",
    "servers": "the option --server of opsmith run: your key is sent there",
    "pass_env": "the option --pass-env of opsmith run: an agent of the command line sees it",
    "max_cost": "the option --max-cost",
    "name": "opsmith tag RUN --name: an experiment has many runs",
    "concurrency": "opsmith run --concurrency: it has no say in a result",
    "workers": "opsmith run --workers: it has no say in a result",
}


def _parse_fraction(value: Any) -> Any:
    """`"5/8"` is a number of a paper as well."""
    if isinstance(value, str) and "/" in value:
        solved, _, of = value.partition("/")
        return float(solved) / float(of)
    return value


def _check_overrides(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fields of `Settings` with right values, none of which an experiment says elsewhere."""
    for name in settings:
        if name in NOT_HERE:
            raise ValueError(f"{name}: expected {NOT_HERE[name]}")
        if name not in NAMES:
            raise ValueError(f"{name}: no such setting; known: {', '.join(set(NAMES) - set(NOT_HERE))}")
    _refuse_commands(settings)
    Settings(**settings)
    return settings


def _refuse_commands(stated: Mapping[str, Any]) -> None:
    """A file may come from somebody else."""
    if name := find_command(stated):
        raise ValueError(f"{name}: expected the option --model of opsmith run: a command is executed, with your rights")


def _check_model(name: str) -> str:
    _refuse_commands({"model": name})
    return name


def _check_shown(shows: str | None) -> str | None:
    known = (*DEMONSTRATIONS, FEEDBACK)
    if shows is not None and shows not in known:
        raise ValueError(f"shows: given {shows!r}; expected one of {', '.join(known)}")
    return shows


def _fold_lines(text: str) -> str:
    """A text without the line breaks of its file."""
    return " ".join(text.split())


ModelName = Annotated[str, AfterValidator(_check_model)]
Text = Annotated[str, AfterValidator(_fold_lines)]
Overrides = Annotated[dict[str, Any], AfterValidator(_check_overrides)]
Start = Literal["nothing", "plain"]  # plain: what runs begin with are the tasks' own programs
Number = Annotated[float, BeforeValidator(_parse_fraction)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Arm(_Part):
    """One way to solve the tasks."""

    name: str = Field(min_length=1)
    model: ModelName | None = None  # a model of its own, whatever the others are asked with
    first_round_of: str | None = None
    learns_from: str | None = None  # an arm whose run solved tasks: what they taught is shown from the start on
    shows: Annotated[str | None, AfterValidator(_check_shown)] = None  # what of that, or in its place
    settings: Overrides = {}  # all other keys of the table


class Series(_Part):
    """One model of the experiment."""

    name: ModelName = Field(min_length=1)
    seeds: tuple[int, ...] = ()  # empty: those of the experiment
    languages: tuple[str, ...] = ()  # those of the experiment that it can write; empty: all
    start: Start | None = None  # None: that of the experiment
    by_name: bool = False  # asked only where the command line names it
    settings: Overrides = {}  # all other keys of the table


class Embedded(_Part):
    """What holds instead for the embedded model, which is no language model."""

    seeds: tuple[int, ...] = ()
    settings: Overrides = {}


class Paper(_Part):
    """Numbers that the paper's text or a table gives; nothing is read off a figure."""

    place: str = Field(min_length=1)  # "Table 2", "section 6.2"
    measure: str  # pass@1, pass@n ...
    arm: str = ""  # "": the paper does not say, or it is none of ours
    model: str = ""  # "": it does not say
    values: dict[str, Number] = {}  # by group or class; `all` is the whole suite

    @model_validator(mode="before")
    @classmethod
    def _one_value(cls, data: Any) -> Any:
        """`value = 0.5` is short for `values = { all = 0.5 }`."""
        if isinstance(data, dict) and "value" in data:
            fields = {name: value for name, value in data.items() if name != "value"}
            return {**fields, "values": {"all": data["value"], **data.get("values", {})}}
        return data


class Experiment(_Part):
    """One experiment file."""

    name: str  # of the file
    collection: str = ""  # a name for all experiments that have it; "": the paper's, which `all` stands for
    title: Text
    shows: Text  # what a reader learns from it, in a sentence or two
    analysis: str
    relative_to: str = ""  # the arm that others are compared with
    start: Start = "nothing"
    languages: tuple[str, ...] = ()  # each arm is run in each of them; empty: in that of the settings, or of the tasks
    tasks: tuple[str, ...] = ()  # empty: the 26 tasks of the paper
    seeds: tuple[int, ...] = Field(default=(0,), min_length=1)
    settings: Overrides = {}
    embedded: Embedded = Embedded()
    models: tuple[Series, ...] = Field(min_length=1, alias="model")
    arms: tuple[Arm, ...] = Field(min_length=1, alias="arm")
    paper: tuple[Paper, ...] = ()
    notes: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _check_references(self) -> Experiment:
        """Every arm that is named is there; one whose spending is a measure comes first."""
        names_before: list[str] = []
        runs = [arm.name for arm in self.arms if arm.first_round_of is None]
        for arm in self.arms:
            named = [*(arm.settings.get(key) for key in BY_ARM), arm.learns_from]
            if bool(arm.shows) != bool(arm.learns_from):
                raise ValueError(f"arm {arm.name!r}: expected learns_from and shows, both or neither")
            missing = [name for name in named if name is not None and name not in names_before]
            missing += [arm.first_round_of] if arm.first_round_of and arm.first_round_of not in runs else []
            if missing:
                raise ValueError(f"arm {arm.name!r}: names {missing[0]!r}, which is no run of an arm before it")
            if arm.first_round_of and (arm.settings or arm.model):
                raise ValueError(f"arm {arm.name!r}: given settings; expected those of {arm.first_round_of!r} alone")
            names_before += [] if arm.first_round_of else [arm.name]
        names = [arm.name for arm in self.arms]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"arm {twice[0]!r}: given twice")
        if self.relative_to and self.relative_to not in names:
            raise ValueError(f"relative_to: no arm is called {self.relative_to!r}; known: {', '.join(names)}")
        return self

    def find_series(self, model: str) -> Series:
        """What the file says of a model; nothing of one that it does not name."""
        unnamed = Series.model_construct(name=model)  # of the command line, which may name a command too
        return next((model_series for model_series in self.models if model_series.name == model), unnamed)
