"""Is this the same run as that one? A run is named by what decides its result, so that the same command finds it again.

What has no say in the result (how many requests at once, how many workers, how much money at most) is no part of the
name: a run that stopped at its cost cap goes on under a higher one.
"""

from __future__ import annotations

import platform
import re
import sqlite3
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from opsmith.agents.prompt import base_prompt
from opsmith.learn.budget import Budget
from opsmith.models import ChatModel
from opsmith.models.keys import without_secrets
from opsmith.models.price import PRICE_LIST
from opsmith.records import Experience, Task, content_hash, dumps, to_json
from opsmith.settings import Settings
from opsmith.store.rows import RunInfo
from opsmith.targets import Target

_NO_SAY = {
    *("concurrency", "batch", "requests_per_minute", "tokens_per_minute", "request_timeout", "request_deadline"),
    *("workers", "executor", "ray_address", "max_cost", "trust_tasks"),
}
_SINCE = {"completions": 1}  # settings that came later: as they are here, runs keep the names that they had without
_NAMED_OTHERWISE = {"tasks", "from_run", "budget_from", "tokens_from"}  # by digests, experiences and the budget


def run_info(
    tasks: Sequence[Task],
    given: Sequence[Experience],
    budget: Budget | None,
    model: ChatModel,
    target: Target,
    settings: Settings,
) -> RunInfo:
    """The run that this command stands for. `given`: the experiences it starts from; `budget`: if limited."""
    deciding = {
        name: value
        for name, value in plain(settings).items()
        if name not in _NO_SAY and (name, value) not in _SINCE.items()
    }
    versions = {"opsmith": metadata.version("opsmith"), "target": target.name, "verifier": target.verifier}
    parts = {
        "settings": {name: value for name, value in deciding.items() if name not in _NAMED_OTHERWISE},
        "model": model.name,
        "tasks": sorted([task.id, task.digest] for task in tasks),
        "given": sorted([item.task.digest, content_hash(item.source), repr(item.success_rate)] for item in given),
        "budget": to_json(budget),
        "prompts": [content_hash(base_prompt(target, settings.prompt)), content_hash(target.guardian_prompt() or "")],
        "versions": versions,
    }
    identity = content_hash(dumps(parts))
    name = f"{_slug(model.name)}-s{settings.seed}-{identity[:10]}"
    return RunInfo(name, identity, model.name, model.is_language_model, target.name, settings.seed, deciding, versions)


def plain(settings: Settings) -> dict[str, Any]:
    """Settings as JSON data; a base URL without user, password and query, which may hold a key."""
    data = settings.model_dump(mode="json")
    if settings.base_url is not None:
        parts = urlsplit(settings.base_url)
        plain_url = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
        data["base_url"] = without_secrets(plain_url)
    return data


def surroundings() -> dict[str, str | None]:
    """Versions that should not matter, but may."""
    names = ("opsmith", "torch", "numpy", "sqlalchemy", "openai", "anthropic", PRICE_LIST)
    here = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version, "system": platform.system()}
    return {**here, **{name: _version(name) for name in names}}


def commit() -> str | None:
    """The commit of the checkout that this package runs from; None when it is installed, or git is not there."""
    folder = Path(__file__).resolve().parent
    try:
        command = ["git", "-C", str(folder), "rev-parse", "HEAD"]
        found = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
        tracked = subprocess.run(
            ["git", "-C", str(folder), "ls-files", "--error-unmatch", __file__],
            capture_output=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None if found.returncode == 0 and tracked.returncode == 0 else None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _slug(name: str) -> str:
    """A model's name as part of a run's: the last part of a path, short and without odd characters."""
    last = name.rstrip("/").rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9.]+", "-", last).strip("-.")[:24] or "model"
