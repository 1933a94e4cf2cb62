"""Several tiny models in one run, at real servers on loopback that speak both protocols and say what they used."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from models.common import FakeTime
from models.servers import AnthropicServer, Fault, OpenAIServer
from tiny_run import fitted

from opsmith.models import ChatModel, Message
from opsmith.models.anthropic import AnthropicModel
from opsmith.models.openai import OpenAIModel
from opsmith.models.sdk import Endpoint

Answer = Callable[[dict[str, Any]], str | Fault]
CHEAP, MIDDLE, DEAR = "openai/gpt-4o-mini", "openai/gpt-4o", "anthropic/claude-3-opus"  # in the order of list prices


def sample_program(body: dict[str, Any]) -> str:
    """As `TinyModel` answers; a protocol without seeds draws by all that a request says."""
    turns = ([{"content": body["system"], "role": "system"}] if "system" in body else []) + body["messages"]
    messages = tuple(Message(turn["role"], _read_text(turn["content"])) for turn in turns)
    rng = random.Random(body.get("seed") or repr(body))
    task, policy = fitted(messages)
    program = policy.sample_program(task, body.get("temperature", 1.0), rng)
    return "impl: |\n  " + program.replace("\n", "\n  ") + "\n"


def _read_text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def answer_wrongly(body: dict[str, Any]) -> str:
    return "impl: |\n  x\n"


def make_model(name: str, server: OpenAIServer | AnthropicServer) -> ChatModel:
    """At the prices of its provider, as if the server were the provider's."""
    provider, _, model = name.partition("/")
    kind = OpenAIModel if provider == "openai" else AnthropicModel
    return kind(Endpoint(name, model, server.url, "key", provider), FakeTime().retry(attempts=1))
