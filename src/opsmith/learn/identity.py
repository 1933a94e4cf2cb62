"""The identity of a run. A run is named by what decides its result, so that the same command finds it again.

What has no say in the result (how many requests at once, how many workers, how much money at most) is no part of the
name: a run that stopped at its cost cap goes on under a higher one.
"""

from __future__ import annotations

import platform
import re
import sqlite3
import subprocess
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from opsmith.agents.outline import request_outline
from opsmith.agents.prompt import ReferenceProgram, write_system_prompt
from opsmith.learn.budget import Budget
from opsmith.learn.material import read_material
from opsmith.models.keys import blot_secrets
from opsmith.models.price import PRICE_LIST, list_by_price
from opsmith.models.roles import TOGETHER, RoleModels, shorten_model
from opsmith.records import TIME, Experience, Task, content_hash, dumps, to_json
from opsmith.settings import PATH_OF, Settings
from opsmith.store.rows import RunInfo
from opsmith.targets import Target
from opsmith.targets.capabilities import name_verifier
from opsmith.targets.protocols import GUARDIAN
from opsmith.tools.table import list_tools, name_offers

_NO_SAY = {
    *("concurrency", "batch", "requests_per_minute", "tokens_per_minute", "request_timeout", "request_deadline"),
    *("workers", "executor", "ray_address", "max_cost", "trust_tasks", "measure", "max_measured", "pass_env"),
    *("name", "price_in", "price_out"),
}
_STATED = {  # part of the name at their default too, as ever; every other setting only where it is changed
    *("tasks", "seed", "model", "base_url", "samples", "temperatures", "levels", "agents", "guardian", "prompt"),
    *("selection", "repair", "max_rounds", "max_tokens", "noise", "from_run", "budget_from", "tokens_from"),
}
_KEPT_GROUPS = {(), ("provider",), ("method",), ("spending",), ("place",)}  # stored with a session at their default too
_OF_FEW = {"target_options", "name", "context_window", "price_in", "price_out"}  # ... but for these
_OF_OPTIMISATION = {("optimisation",), ("generation",)}
ORDER = "models by price"  # in `RunInfo.versions`: prices may change while a run is under way
_NAMED_OTHERWISE = {"tasks", "from_run", "known", "manual", "budget_from", "tokens_from"}  # by digests, the budget


def run_info(
    tasks: Sequence[Task],
    experiences: Sequence[Experience],
    budget: Budget | None,
    models: RoleModels,
    target: Target,
    settings: Settings,
    references: Mapping[str, ReferenceProgram] | None = None,
    shown: Mapping[str, str] = MappingProxyType({}),
) -> RunInfo:
    """The run that this command stands for.

    `experiences`: where it starts; `references`: by task, of another language; `shown`: digests of the rest.
    """
    defaults = Settings().as_flat("json")
    deciding = {
        name: value
        for name, value in plain_settings(settings).items()
        if name in _STATED or (name not in _NO_SAY and value != defaults[name])
    }
    versions: dict[str, Any] = {
        "opsmith": metadata.version("opsmith"),
        "target": target.name,
        "verifier": name_verifier(target),
    }
    deciders = {
        "settings": {name: value for name, value in deciding.items() if name not in _NAMED_OTHERWISE},
        "model": models.name,
        "tasks": sorted([task.id, task.digest] for task in tasks),
        "given": sorted(
            [experience.task.digest, content_hash(experience.source), repr(experience.success_rate)]
            for experience in experiences
        ),
        "budget": to_json(budget),
        "prompts": [
            content_hash(
                write_system_prompt(target, settings.method.prompt, has_example=settings.teamwork.showing.example)
            ),
            content_hash(target.base_prompt(GUARDIAN) or ""),
        ],
        "versions": versions,
    }
    if models.by_role:
        deciders["models of roles"] = {role: model.name for role, model in models.by_role.items()}
    if material := read_material(settings.generation).digest if settings.optimisation.optimise else "":
        deciders["material"] = material
    deciders |= {name: digest for name, digest in shown.items() if digest}
    if references:
        deciders["references"] = sorted(
            [task, program.target, content_hash(program.source)] for task, program in references.items()
        )
    if settings.teamwork.thinking.think:
        deciders["outline"] = content_hash(request_outline(target, settings.method.prompt))
    if settings.teamwork.tooling.tools != "none":
        deciders["offers"] = name_offers(list_tools(settings.teamwork.tooling.tools, target))
    identity, model = content_hash(dumps(deciders)), models.name
    if settings.teamwork.team.policy == "cheapest-first":
        versions[ORDER] = list_by_price(models.by_name)  # no part of the name: prices change
    name = f"{_short_name(model)}-s{settings.seed}-{identity[:10]}"
    return RunInfo(name, identity, model, models.is_language_model, target.name, settings.seed, deciding, versions)


def plain_settings(settings: Settings) -> dict[str, Any]:
    """Settings as JSON data; a base URL without user, password and query, which may hold a key.

    Of what most runs do without (options of a target, measuring, optimisation, teamwork) only that which is changed.
    """
    defaults = Settings(objective=TIME.name).as_flat("json")  # this one was every language's default
    data = {
        name: value
        for name, value in settings.as_flat("json").items()
        if value != defaults[name] or (PATH_OF[name] in _KEPT_GROUPS and name not in _OF_FEW)
        if settings.optimisation.optimise or PATH_OF[name] not in _OF_OPTIMISATION
    }
    for name in ("base_url", "analyst_url"):
        if data.get(name) is not None:
            data[name] = _plain_url(data[name])
    if "servers" in data:
        pairs = (text.rpartition("=") for text in data["servers"])
        data["servers"] = [f"{name}={_plain_url(url)}" for name, _, url in pairs]
    return data


def _plain_url(address: str) -> str:
    url = urlsplit(address)
    return blot_secrets(urlunsplit((url.scheme, url.netloc.rpartition("@")[2], url.path, "", "")))


def describe_surroundings() -> dict[str, str | None]:
    """Versions that should not matter, but may."""
    names = ("opsmith", "torch", "numpy", "sqlalchemy", "openai", "anthropic", PRICE_LIST)
    here = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version, "system": platform.system()}
    return {**here, **{name: _package_version(name) for name in names}}


def read_commit() -> str | None:
    """The commit of the checkout that this package runs from; None when it is installed, or git is not there."""
    folder = Path(__file__).resolve().parent
    try:
        command = ["git", "-C", str(folder), "rev-parse", "HEAD"]
        head = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
        tracked = subprocess.run(
            ["git", "-C", str(folder), "ls-files", "--error-unmatch", __file__],
            capture_output=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return head.stdout.strip() or None if head.returncode == 0 and tracked.returncode == 0 else None


def _package_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _short_name(name: str) -> str:
    """A model's name as part of a run's: the last part of a path, short and without odd characters; of several models
    these of each."""
    last = "-".join(shorten_model(part) for part in name.split(TOGETHER))
    return re.sub(r"[^A-Za-z0-9.]+", "-", last).strip("-.")[:24] or "model"
