"""The chat models that there are, and how one is made from its name.

A further provider is one line in `FAMILIES`, and a module if it speaks a protocol of its own; another package may add
families by entry points of the group `opsmith.models`, which are asked for unknown names only. What makes a model is
named, and imported when one is made, never before. Addresses come from the table or from --base-url, never from an
SDK's own variables, so that the saved settings say where the replies came from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

from opsmith.by_name import import_by_name
from opsmith.errors import UsageError
from opsmith.models import ChatModel
from opsmith.models.keys import read_key, redact_secrets
from opsmith.models.order import Order, ProviderServer, check_url
from opsmith.models.roles import ANALYST, GUARDIAN, NO_MODEL, PLANNER, RoleModels
from opsmith.models.swarm import PREFIX, SwarmModel, list_members
from opsmith.settings import Provider, Settings

if TYPE_CHECKING:  # who only lists models sends nothing
    from opsmith.models.retry import Retry
    from opsmith.targets import Target

_ENTRY_POINTS = "opsmith.models"  # the group of other packages' families


@dataclass(frozen=True)
class Family:
    """All models whose names begin alike. `suffix` says what follows the prefix; "": the prefix is the whole name."""

    suffix: str
    what: str
    maker: str  # module:function, of an `Order`; "": its members are made, each by its own
    server: ProviderServer | None = None  # None: no server, no key
    batches: bool = False  # it has a batch API that `batch_apis` speaks
    spreads: bool = False  # it computes each reply from the request alone, so that many machines may share the work
    completions: bool = False  # one request may ask for several completions
    tools: bool = False  # it calls tools, natively or by text
    reasons: bool = False  # it can be told how much to reason
    is_program: bool = False  # it follows no words: a plan is nothing that it could make
    analyst: str | None = None  # the model that suggests to it; None: itself, "none": it reads no suggestion


@dataclass(frozen=True)
class ModelInfo:
    """One line of `opsmith models`; the key itself is never shown."""

    pattern: str
    what: str
    variable: str | None  # None: needs no key
    key_present: bool | None


def get_model(settings: Settings, target: Target | None = None, retry: Retry | None = None) -> ChatModel:
    """The model that `settings.provider.model` names; the embedded one needs the `target`. Raises UsageError."""
    name = settings.provider.model
    prefix, family = check_family(settings.provider)
    if members := list_members(name):
        return SwarmModel([get_model(settings.replace(model=member), target, retry) for member in members])
    make: Callable[[Order], ChatModel] = import_by_name(family.maker, f"model {name!r}")
    return make(Order(settings, name.removeprefix(prefix), family.server, target, retry))


def make_models(settings: Settings, target: Target | None = None, own: ChatModel | None = None) -> RoleModels:
    """All models that the settings name; `own`: the run's own, where there is one already. Raises UsageError.

    Each is made once: what has the same name at the same server shares its connections and its limits.
    """
    check_team(settings)
    check_tools(settings)
    check_thinking(settings)
    built: dict[tuple[str, str | None], ChatModel] = {}

    def make_once(chosen: Settings) -> ChatModel:
        place = chosen.provider.model, chosen.provider.base_url
        if place not in built:
            built[place] = get_model(chosen, target)
        return built[place]

    by_name = {name: make_once(chosen) for name, chosen in choose_proposers(settings).items()}
    first = next(iter(by_name.values()), None) or own or make_once(settings)
    return RoleModels(first, {role: make_once(chosen) for role, chosen in choose_settings(settings).items()}, by_name)


def choose_proposers(settings: Settings) -> dict[str, Settings]:
    """By name, the settings of each proposer of a run that has several; empty where it has one. Raises UsageError."""
    servers = read_servers(settings)
    return {
        name: settings.replace(model=name, base_url=servers.get(name), models=(), servers=())
        for name in settings.teamwork.team.models
    }


def check_team(settings: Settings) -> None:
    """Raises UsageError for several models that one run cannot have."""
    models, optimisation = settings.teamwork.team.models, settings.optimisation
    if models and settings.provider.base_url is not None:
        example = f"--server {models[0]}=URL"
        raise UsageError(f"--base-url: given with {len(models)} models; expected one; try: {example}")
    if models and optimisation.optimise:
        swarm = PREFIX + ",".join(models)
        raise UsageError(f"--optimise: given with {len(models)} models; expected one; try: --model {swarm}")
    if not models and settings.teamwork.team.policy != "each":
        raise UsageError(
            f"--policy: given {settings.teamwork.team.policy!r} with one model; expected --model several times"
        )
    for chosen in choose_proposers(settings).values():
        check_family(chosen.provider)


def check_tools(settings: Settings) -> None:
    """Raises UsageError where proposers shall call tools and one of them cannot, or the settings leave it no turns."""
    choice, provider = settings.teamwork.tooling.tools, settings.provider
    if choice == "none":
        return
    for name in settings.teamwork.team.models or list_members(provider.model) or (provider.model,):
        if not find_family(name)[1].tools:
            able = ", ".join(prefix + family.suffix for prefix, family in FAMILIES.items() if family.tools)
            raise UsageError(
                f"--tools {choice}: given with model {name!r}, which calls no tools; expected {able}; try: leave it out"
            )
    if provider.batch:
        raise UsageError(f"--tools {choice}: given with --batch, whose replies come in hours; expected one of them")
    if provider.completions > 1:
        raise UsageError(
            f"--tools {choice}: given with --completions {provider.completions}; expected 1, since each sample is a "
            "conversation of its own"
        )


def check_thinking(settings: Settings) -> None:
    """Raises UsageError where nobody can do what is asked for; of several proposers, those that cannot ignore it."""
    thinking, provider = settings.teamwork.thinking, settings.provider
    names = settings.teamwork.team.models or list_members(provider.model) or (provider.model,)
    families = [find_family(name)[1] for name in names]
    listed = ", ".join(map(repr, names))
    if thinking.reasoning and not any(family.reasons for family in families):
        able = ", ".join(prefix + family.suffix for prefix, family in FAMILIES.items() if family.reasons)
        raise UsageError(
            f"--reasoning {thinking.reasoning}: given with model {listed}, which cannot be told how much to reason; "
            f"expected {able}; try: leave it out"
        )
    if thinking.think and all(family.is_program for family in families):
        raise UsageError(
            f"--think: given with model {listed}, a program, which writes no plan; expected a language model; "
            f"try: leave it out"
        )


def read_servers(settings: Settings) -> dict[str, str]:
    """By model's name, the server of the user's own that `--server NAME=URL` gives it. Raises UsageError."""
    names, servers = _list_named(settings), dict[str, str]()
    for text in settings.teamwork.team.servers:
        name = max((name for name in names if text.startswith(f"{name}=")), key=len, default=None)
        if name is None:
            problem = f"given {redact_secrets(text)!r}; expected NAME=URL with one of {', '.join(names)}"
            raise UsageError(f"--server: {problem}")
        if name in servers:
            raise UsageError(f"--server: given twice for {name!r}; expected one server of each model")
        if find_family(name)[1].server is None:
            raise UsageError(f"--server: given for {name!r}, which asks no server; try: leave it out")
        servers[name] = check_url(text.removeprefix(f"{name}="), "--server")
    if settings.provider.model in servers and not settings.teamwork.team.models:
        raise UsageError(
            f"--server: given for the run's only model {settings.provider.model!r}; expected --base-url URL"
        )
    if settings.optimisation.analyst in servers and settings.optimisation.analyst_url is not None:
        raise UsageError("--analyst-url: given beside a --server of the analyst; expected one of them")
    return servers


def _list_named(settings: Settings) -> tuple[str, ...]:
    """Every model that the settings name, once."""
    roles = (settings.teamwork.team.guardian_model, settings.teamwork.planning.planner, settings.optimisation.analyst)
    proposers = settings.teamwork.team.models or (settings.provider.model,)
    return tuple(dict.fromkeys([*proposers, *(name for name in roles if name not in (None, NO_MODEL))]))


def choose_settings(settings: Settings) -> dict[str, Settings]:
    """By role, the settings whose model has it, of the roles that do not ask the run's own. Raises UsageError."""
    optimisation = settings.optimisation
    if optimisation.analyst in (None, NO_MODEL) and optimisation.analyst_url is not None:
        problem = f"given without a model for it; expected --analyst; given {optimisation.analyst!r}"
        raise UsageError(f"--analyst-url: {problem}")
    chosen = {
        ANALYST: _choose_role(settings, optimisation.analyst, optimisation.analyst_url),
        GUARDIAN: _choose_role(settings, settings.teamwork.team.guardian_model),
        PLANNER: _choose_role(settings, settings.teamwork.planning.planner),
    }
    return {role: of_role for role, of_role in chosen.items() if of_role is not None}


def _choose_role(settings: Settings, name: str | None, url: str | None = None) -> Settings | None:
    """The settings of a role's model, which a server of the user's own is asked for where it speaks its protocol; None:
    samples ask their own model."""
    if name in (None, NO_MODEL):
        return None
    assert name is not None
    provider = settings.provider
    prefix, family = find_family(name)
    url = url or read_servers(settings).get(name)
    if url is None and prefix == find_family(provider.model)[0]:
        url = provider.base_url  # a server of the user's own, which is trusted with the prompts
    if (name, url) == (provider.model, provider.base_url) and not settings.teamwork.team.models:
        return None
    batch = provider.batch and family.batches
    changes = {"completions": 1, "batch": batch, "models": (), "servers": (), "policy": "each"}
    return settings.replace(model=name, base_url=url, **changes)


def check_family(provider: Provider) -> tuple[str, Family]:
    """The family of that model, which can do what they ask for, and its prefix. Raises UsageError."""
    prefix, family = find_family(provider.model)
    if provider.completions > 1 and not family.completions:
        offer = ", ".join(name + able.suffix for name, able in FAMILIES.items() if able.completions)
        raise UsageError(
            f"--completions: given {provider.completions} with model {provider.model!r}, whose requests bring one "
            f"completion each; expected {offer}; try: leave it out"
        )
    if provider.batch and not family.batches:
        speak = " and ".join(name + able.suffix for name, able in FAMILIES.items() if able.batches)
        raise UsageError(
            f"--batch: given with model {provider.model!r}, of which no batch API is known; expected {speak}; "
            f"try: leave it out"
        )
    return prefix, family


def choose_analyst(settings: Settings) -> Settings:
    """With the analyst that belongs to the run's model, where none is named. A model that reads no suggestion is not
    sent its wrong programs back either: it would not read what is wrong. Raises UsageError."""
    if not settings.optimisation.optimise or settings.optimisation.analyst is not None:
        return settings
    analyst = find_family(settings.provider.model)[1].analyst
    changes = {"fixes": 0} if analyst == NO_MODEL else {}
    return settings.replace(analyst=analyst, **changes)


def find_family(name: str) -> tuple[str, Family]:
    """The family of a model's name, and its prefix. Raises UsageError."""
    for prefix, family in FAMILIES.items():
        if name.startswith(prefix) and bool(name.removeprefix(prefix)) == bool(family.suffix):
            return prefix, family
    own, slash, rest = name.partition("/")
    for point in metadata.entry_points(group=_ENTRY_POINTS, name=own):
        outside: Family = import_by_name(point.value, f"model {name!r}")
        if bool(rest) == bool(outside.suffix):
            return own + slash, outside
    patterns = ", ".join(info.pattern for info in list_models())
    hint = "" if not name or "/" in name or ":" in name else f"; try: who serves it in front, such as openai/{name}"
    raise UsageError(f"model {name!r}: no such model; known: {patterns}{hint}")


def find_spreading(settings: Settings) -> str | None:
    """The first proposer of which many machines may share the work; None: there is none."""
    names = settings.teamwork.team.models or (settings.provider.model,)
    return next((name for name in names if find_family(name)[1].spreads), None)


def list_models() -> tuple[ModelInfo, ...]:
    """What can be named, for `opsmith models` and for the message about an unknown name."""
    return tuple(_describe_family(prefix, family) for prefix, family in FAMILIES.items())


def _describe_family(prefix: str, family: Family) -> ModelInfo:
    variable = family.server.variable if family.server else None
    return ModelInfo(prefix + family.suffix, family.what, variable, _has_key(variable) if variable else None)


def _has_key(variable: str) -> bool:
    try:
        return read_key(variable) is not None
    except UsageError:  # there is one, and it is malformed: said when it is used
        return True


FAMILIES: dict[str, Family] = {
    "embedded": Family(
        "",
        "the program sampler of the target language: offline, free, no language model",
        "opsmith_lab.models.embedded:make_embedded",
        spreads=True,
        is_program=True,
        analyst=NO_MODEL,
    ),
    "search": Family(
        "",
        "best-first search over the target's typed moves: offline, free, no language model",
        "opsmith_lab.models.search:make_search",
        is_program=True,
        analyst=NO_MODEL,
    ),
    "tuner": Family(
        "",
        "rewrites right programs to faster ones: offline, free, no language model",
        "opsmith_lab.models.tuned:make_tuning",
        spreads=True,
        is_program=True,
        analyst=ANALYST,
    ),
    "analyst": Family(
        "",
        "suggests rewritings to the tuner: offline, free, no language model",
        "opsmith_lab.models.tuned:make_tuning",
        spreads=True,
        is_program=True,
    ),
    "metaschedule": Family(
        "",
        "TVM's schedule search, measured here: offline, free, no language model",
        "opsmith_lab.models.scheduling:make_scheduling",
        spreads=True,
        is_program=True,
    ),
    "templates": Family(
        "",
        "Optuna over the tiles of the same schedules: offline, free, no language model",
        "opsmith_lab.models.scheduling:make_scheduling",
        spreads=True,
        is_program=True,
    ),
    "openai/": Family(
        "NAME",
        "OpenAI, or with --base-url any server of its protocol: vLLM, Ollama, llama.cpp, a proxy",
        "opsmith.models.providers:make_openai",
        ProviderServer("https://api.openai.com/v1", "OPENAI_API_KEY", "openai"),
        batches=True,
        completions=True,
        tools=True,
        reasons=True,
    ),
    "anthropic/": Family(
        "NAME",
        "Anthropic, or with --base-url a server of its protocol",
        "opsmith.models.providers:make_anthropic",
        ProviderServer("https://api.anthropic.com", "ANTHROPIC_API_KEY", "anthropic"),
        batches=True,
        tools=True,
        reasons=True,
    ),
    "deepseek/": Family(
        "NAME",
        "DeepSeek",
        "opsmith.models.providers:make_openai",
        ProviderServer("https://api.deepseek.com", "DEEPSEEK_API_KEY", "deepseek"),
        tools=True,
        reasons=True,
    ),
    "together/": Family(
        "NAME",
        "Together AI",
        "opsmith.models.providers:make_openai",
        ProviderServer("https://api.together.xyz/v1", "TOGETHER_API_KEY", "together"),
        completions=True,
        tools=True,
        reasons=True,
    ),
    "mind/": Family(
        "NAME",
        "a known mind of `opsmith experiment study3` and `study-learning`: planted behaviour, no language model",
        "opsmith_lab.evaluation.learners:make_mind",
        is_program=True,
    ),
    PREFIX: Family("NAME,NAME", "several models, which share the attempts of each task by turns", ""),
    "command:": Family(
        "PROGRAM ARGS",
        "an agent of your own on the command line: prompt on its input or in {prompt}, reply printed or in {reply}",
        "opsmith.models.providers:make_command",
        tools=True,
    ),
    "replay:": Family(
        "FILE",
        "replies recorded before, from a JSONL file",
        "opsmith.models.providers:make_replay",
        completions=True,
        reasons=True,
    ),
}
