"""Chat models: messages in, texts out. One protocol for paid servers, local servers, replays and the embedded model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from opsmith.errors import ProviderError
from opsmith.models.pictures import Picture
from opsmith.records import Usage

MOST_TOKENS = 10**8  # that one reply can state: a larger number is no count


@dataclass(frozen=True)
class ToolCall:
    """A tool that a model wants to have run."""

    id: str  # by which its result is sent back
    name: str
    arguments: str  # as received: JSON, if all is well


@dataclass(frozen=True)
class ToolOffer:
    """A tool that a model may call."""

    name: str
    description: str
    schema: str  # of its arguments: the text of a JSON schema


@dataclass(frozen=True)
class Message:
    """One turn. Only a user's may hold pictures, only an assistant's calls of tools; role `tool` is the result of one.
    What is left at its default has no part in its hash.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    images: tuple[Picture, ...] = field(default=(), metadata={"left_out": ()})
    calls: tuple[ToolCall, ...] = field(default=(), metadata={"left_out": ()})
    call: str = field(default="", metadata={"left_out": ""})  # of role tool: the id of the call that it answers
    raw: str = field(default="", metadata={"left_out": ""})  # of an assistant: `Reply.raw`

    def __post_init__(self) -> None:
        if self.images and self.role != "user":
            raise ValueError(f"message: given pictures of the {self.role}; expected them in a user's message only")


@dataclass(frozen=True)
class Request:
    """One call. The static part of a prompt comes first in `messages`, so that providers' prompt caches work."""

    messages: tuple[Message, ...]
    n: int = 1
    temperature: float = 0.7
    max_tokens: int = 1024
    seed: int | None = None  # None: the provider chooses
    attempt: int = 0  # how many first requests of this task came before in the run; for models that do not sample
    tools: tuple[ToolOffer, ...] = field(default=(), metadata={"left_out": ()})
    reasoning: Literal["low", "medium", "high"] | None = field(default=None, metadata={"left_out": None})
    may_call: bool = field(default=True, metadata={"left_out": True})  # False: `tools` are there since they were called


@dataclass(frozen=True)
class Reply:
    """What one call brought. `texts` has one entry per completion, as received, less our own keys, and may have fewer
    than were asked for; `finish` says why each ended: "stop", "length" ... Which of them are answers: `models.answers`.
    """

    texts: tuple[str, ...]
    usage: Usage
    model: str = ""  # the dated name the server reports
    finish: tuple[str, ...] = ()
    blind: bool = field(
        default=False, metadata={"left_out": False}
    )  # it takes no pictures: the request's were left out
    calls: tuple[tuple[ToolCall, ...], ...] = field(default=(), metadata={"left_out": ()})  # of each completion
    raw: tuple[str, ...] = field(
        default=(), metadata={"left_out": ()}
    )  # of each: what the provider wants back as it came in the next turn, as JSON
    shared: int = field(
        default=0, metadata={"left_out": 0}
    )  # completions of one request, among which its counts were shared out by length; 0: they are this reply's own


class ExhaustedError(ProviderError):
    """A model that enumerates has nothing more for this task; nobody is at fault."""


class ChatModel(Protocol):
    name: str  # as the user named it, e.g. "openai/gpt-4o-2024-11-20"
    context_window: int | None  # in tokens; None: not known, nothing is left out
    is_language_model: bool  # False for the embedded sampler, the search, and replays of them

    async def complete(self, request: Request) -> Reply:
        """Raises ProviderError when there is no answer to count."""

    async def close(self) -> None: ...


@runtime_checkable
class Caching(Protocol):
    """What a chat model adds whose provider keeps prompts: one that was answered before is cheaper to read again."""

    caches_from: int | None  # the shortest prompt, in tokens, that is kept; None: at this address nothing is known


@runtime_checkable
class Priced(Protocol):
    """What a chat model adds whose price may be listed."""

    @property
    def token_price(self) -> float | None:
        """USD of a token, read or written; None: not known."""


class Ledger(Protocol):
    """Which request lies in which batch; kept by whoever keeps the run. What was noted is committed on return."""

    def list_batches(self, model: str) -> dict[str, str]:
        """The last batch of every request's name, less those that failed in it."""

    async def note_submitted(self, model: str, batch: str, names: Sequence[str]) -> None: ...

    async def note_failed(self, batch: str, names: Sequence[str]) -> None: ...


@runtime_checkable
class Recorded(Protocol):
    """What a chat model adds that plays back a run: the secret that this run's hidden sizes were drawn from."""

    secret: str


@runtime_checkable
class Batched(Protocol):
    """What a chat model adds whose replies come in batches, hours later: as many requests wait at once as there are."""

    def use_ledger(self, ledger: Ledger) -> None:
        """Keep account there from now on, and know what earlier sessions handed in."""
