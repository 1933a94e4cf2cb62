"""Runs of several models for tests: tiny models at real servers on loopback, which answer as told and send usage."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from models.common import FakeTime
from models.servers import AnthropicServer, Fault, OpenAIServer
from tiny_run import TASKS, fitted

from opsmith.models import Message
from opsmith.models.anthropic import AnthropicModel
from opsmith.models.openai import OpenAIModel
from opsmith.models.roles import RoleModels
from opsmith.models.sdk import Endpoint

Handler = Callable[[dict[str, Any]], str | Fault]
Server = OpenAIServer | AnthropicServer
CHEAP, MIDDLE, DEAR = "openai/gpt-4o-mini", "openai/gpt-4o", "anthropic/claude-3-opus-20240229"  # by their list prices


def sample_program(body: dict[str, Any]) -> str:
    """As `TinyModel` answers, from the request's seed; a server without seeds has them from the request's text."""
    messages = body["messages"]
    system = [{"role": "system", "content": body["system"]}] if "system" in body else []
    turns = tuple(Message(turn["role"], _read_text(turn["content"])) for turn in [*system, *messages])
    rng = random.Random(body.get("seed", repr(sorted(body.items(), key=str))))
    task, policy = fitted(turns)
    return f"impl: |\n  {policy.sample_program(task, body.get('temperature', 1.0), rng)}\n"


def _read_text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def answer_wrong(body: dict[str, Any]) -> str:
    return "impl: |\n  x\n"
