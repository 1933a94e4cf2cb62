"""What the providers' official SDKs have in common: how they are loaded, how they fail, and what a model refuses.

The SDKs send and receive (`max_retries=0`, aiohttp transport); replies are read from the raw body by our own schemas,
so that a server that is only nearly compatible is either understood or refused with words, never half parsed.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, TypeVar

from opsmith.errors import UsageError
from opsmith.models import Message, Reply, Request, ToolCall
from opsmith.models.answers import NO_TEXT, OWN_END
from opsmith.models.attempt import Failure, Sent, read_retry_after
from opsmith.models.bodies import read_bounded
from opsmith.models.keys import blot_secrets, make_blotter, redact_secrets
from opsmith.models.limits import Gate, OwnPace, RateLimits
from opsmith.models.parts import holds_pictures, read_word, replace_surrogates
from opsmith.models.pictures import Picture
from opsmith.models.price import NOMINAL, StatedPrice, estimate_token_price, price_reply
from opsmith.models.refusals import Lesson, Refusals
from opsmith.models.retry import Retry, log
from opsmith.models.textual_tools import read_textual
from opsmith.models.tokens import estimate_tokens
from opsmith.models.windows import find_context_window
from opsmith.records import Usage

T = TypeVar("T")
UNSERVED = (404, 405, 501)  # how servers say that they have nothing at an address
MAX_WORDS = 500  # characters of a server's message that are shown

_KINDS = {type(None): "null", list: "a list without text", dict: "an object without text", int: "a number"}
UNCOUNTED = "given no token counts; they count as 0, and the cost is unknown"


@dataclass(frozen=True)
class Endpoint:
    """A model, where it is served, and what opens the door."""

    name: str  # as the user named it, e.g. "openai/gpt-4o-2024-11-20"
    model: str  # as the server knows it
    url: str
    key: str = field(repr=False)
    provider: str | None  # whose price list holds; None: a server of the user's own
    limits: RateLimits = field(default_factory=RateLimits)
    price: StatedPrice | None = None  # of a server of the user's own; None: not stated

    @property
    def location(self) -> str:
        return f"{self.name} at {self.url}"


def load_sdk(package: str) -> Any:
    """An SDK with its aiohttp transport. Raises UsageError that says how to install it."""
    try:
        import_module("aiohttp")
        return import_module(package)
    except ImportError as error:
        missing = error.name or package
    raise UsageError(
        f"model server: given no package {missing!r}; expected the {package} SDK; try: pip install 'opsmith[providers]'"
    )


class Connection:
    """One endpoint: sends, leaves out what is refused, retries, and reads the body."""

    def __init__(
        self,
        endpoint: Endpoint,
        sdk: Any,
        retry: Retry,
        instead: Mapping[str, str | None],
        lessons: Sequence[Lesson] = (),
    ) -> None:
        self._endpoint = endpoint
        pace = OwnPace(endpoint.location, retry.timeout_s) if endpoint.provider is None else None
        self._gate = Gate(*endpoint.limits, clock=retry.clock, sleep=retry.sleep, pace=pace)
        self._instead = instead
        self._refusals = Refusals(endpoint.name, instead, lessons)
        self._said: set[str] = set()
        self._retry = retry
        self._status_error: type[Exception] = sdk.APIStatusError
        self._silence: type[Exception] = sdk.APITimeoutError
        # ValueError: a body that is no reply; RecursionError: one nested beyond reason
        aiohttp = import_module("aiohttp")
        self._unreached: type[Exception] = aiohttp.ClientConnectorError
        self._faults = (sdk.APIError, aiohttp.ClientError, OSError, ValueError, RecursionError)

    async def ask_model(
        self,
        create: Callable[[dict[str, Any], float], Awaitable[Any]],
        build: Callable[[], Mapping[str, Any]],
        read: Callable[[Any], Reply],
        tokens: int = 0,
        messages: Sequence[Message] = (),
    ) -> Reply:
        """`read` of the JSON that `create(parameters, timeout)` brings; `tokens`: about what it will use.

        `messages`: of its prompt. `build` makes the parameters, by what has been learnt so far.

        Raises ProviderError.
        """

        async def send(seconds: float) -> Sent[Reply]:
            ahead = False
            try:
                while True:
                    learnt, parameters = self.learnt, build()
                    sent = self._refusals.fit_parameters(parameters)
                    result = await self._send_once(
                        create(sent, seconds), lambda content: self._read_reply(content, read)
                    )
                    if isinstance(result, Sent):
                        blind = holds_pictures(parameters) and not holds_pictures(sent)
                        usage = result.value.usage
                        reply = replace(result.value, blind=blind)
                        return replace(result, value=reply, tokens=usage.input_tokens + usage.output_tokens)
                    if not self._refusals.learn_refusal(result, sent, learnt):
                        raise result
                    ahead = ahead or await self._refusals.become_scout()
            finally:
                if ahead:
                    self._refusals.release_others()

        return await self._retry.send_patiently(self._endpoint.location, send, self._gate, tokens, messages=messages)

    async def call_server(
        self,
        create: Callable[[float], Awaitable[Any]],
        read: Callable[[bytes], T],
        look_at: str = "",
        unserved: str = "",
    ) -> T:
        """`read` of the content that `create(timeout)` brings, for all that is no completion. Raises ProviderError.

        `look_at`: for what must not be done twice, as in `Retry.send_patiently`. `unserved`: what to try where the
        server has nothing at this address.
        """

        async def send(seconds: float) -> Sent[T]:
            result = await self._send_once(create(seconds), read)
            if isinstance(result, Failure):
                if result.status in UNSERVED:
                    result.remedy = unserved
                raise result
            return result

        return await self._retry.send_patiently(self._endpoint.location, send, self._gate, look_at=look_at)

    def _read_reply(self, content: bytes, read: Callable[[Any], Reply]) -> Reply:
        body = json.loads(content)
        if isinstance(body, dict) and body.get("error"):  # some servers report errors with status 200
            raise Failure(self._clean_text(_read_words(body)))
        return self._blot_key(read(body))

    def warn_once(self, what: str) -> None:
        """Warn of what the server does, once."""
        if what not in self._said:
            self._said.add(what)
            log.warning("%s: %s", self._endpoint.name, what)

    @property
    def learnt(self) -> frozenset[str]:
        """The names of the lessons that the model has taught so far."""
        return frozenset(self._refusals.learnt)

    def fit_parameters(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters without those that the model refuses."""
        return self._refusals.fit_parameters(parameters)

    def learn_refusal(self, failure: Failure, parameters: Mapping[str, Any], learnt: Set[str]) -> bool:
        """Whether a request in a batch failed for what is left out from now on; it was made by what was `learnt`."""
        return self._refusals.learn_refusal(failure, parameters, learnt)

    def read_entry(self, body: object, status: int, read: Callable[[Any], Reply]) -> Reply | Failure:
        """One entry of a batch's results, which is what its own request would have brought."""
        try:
            if status != 200:
                return Failure(self._clean_text(_read_words(body)), status=status)
            return replace(self._blot_key(read(body)), blind=self._refusals.blind)
        except self._faults as error:
            return Failure(self._clean_text(_describe_cause(error)))

    async def _send_once(self, call: Awaitable[Any], read: Callable[[bytes], T]) -> Sent[T] | Failure:
        try:
            raw = await call
            return Sent(read(await raw.http_response.aread()), headers=raw.headers)
        except Failure as failure:
            return failure
        except self._status_error as error:
            return self._read_refusal(error)
        except self._faults as error:
            sent = not any(isinstance(cause, self._unreached) for cause in _list_causes(error))
            return Failure(
                self._clean_text(_describe_cause(error)), sent=sent, is_silent=sent and isinstance(error, self._silence)
            )

    def _read_refusal(self, error: Any) -> Failure:
        """A 4xx or 5xx of either SDK."""
        inner = _unwrap_error(error.body)
        return Failure(
            self._clean_text(_read_words(error.body) or error.message),
            status=error.status_code,
            retry_after=read_retry_after(error.response.headers),
            code=str(inner.get("code") or inner.get("type") or ""),
            parameter=str(inner.get("param") or ""),
        )

    def read_id(self, content: bytes) -> str:
        """The `id` of what a server made for us; one that holds our key is refused, since it would be stored."""
        data = json.loads(content)
        name = data.get("id") if isinstance(data, dict) else None
        if not isinstance(name, str) or name != blot_secrets(name, [self._endpoint.key]):
            raise Failure("an answer without a usable id")
        return name

    def _blot_key(self, reply: Reply) -> Reply:
        """A reply as it may be stored and shown: a server that echoes our key is not the place where it gets out."""
        clean = make_blotter([self._endpoint.key])
        return replace(
            reply,
            texts=tuple(map(clean, reply.texts)),
            model=clean(reply.model),
            finish=tuple(map(clean, reply.finish)),
            calls=tuple(
                tuple(ToolCall(clean(call.id), clean(call.name), clean(call.arguments)) for call in calls)
                for calls in reply.calls
            ),
            raw=tuple(map(clean, reply.raw)),
        )

    def _clean_text(self, text: str) -> str:
        """A server's words on one line, printable, bounded and without a key."""
        clean = redact_secrets(text, [self._endpoint.key])[: 20 * MAX_WORDS]  # a key is gone before anything is cut
        printable = "".join(char if char.isprintable() else " " for char in clean)
        line = " ".join(printable.split())
        return line if len(line) <= MAX_WORDS else line[:MAX_WORDS] + " ..."


class ServedModel:
    """A chat model behind an SDK. `client`: the name of the SDK's class."""

    is_language_model = True

    def __init__(self, endpoint: Endpoint, sdk: Any, client: str, channel: Connection) -> None:
        self.name = endpoint.name
        self.context_window = find_context_window(endpoint.provider, endpoint.model)
        self.channel = channel
        self._endpoint = endpoint
        self.client = getattr(sdk, client)(
            api_key=endpoint.key,
            base_url=endpoint.url,
            max_retries=0,
            # no redirect is followed, which would take the prompt to wherever it leads
            http_client=sdk.DefaultAioHttpClient(follow_redirects=False, event_hooks={"response": [read_bounded]}),
        )

    @property
    def token_price(self) -> float | None:
        stated = self._endpoint.price
        if stated is not None:
            return stated.price_tokens(*NOMINAL) / sum(NOMINAL)
        return estimate_token_price(self._endpoint.provider, self._endpoint.model)

    async def close(self) -> None:
        await self.client.close()

    def price_usage(self, usage: Usage, model: str, cache_written: int = 0) -> Usage:
        """The usage with its cost; `model`: as the server named it."""
        if self._endpoint.price is not None:
            return replace(usage, cost_usd=self._endpoint.price.price_tokens(usage.input_tokens, usage.output_tokens))
        cost = price_reply(self._endpoint.provider, (model, self._endpoint.model), usage, cache_written)
        return replace(usage, cost_usd=cost)


def _unwrap_error(body: object) -> Mapping[str, Any]:
    """The error object of a body; the OpenAI SDK has unwrapped it already, servers differ."""
    if not isinstance(body, dict):
        return {}
    inner = body.get("error")
    return inner if isinstance(inner, dict) else body


def _read_words(body: object) -> str:
    """What a body says in words; "" when it says nothing."""
    inner = _unwrap_error(body)
    words = inner.get("message") or inner.get("detail") or inner.get("error") or body
    return words if isinstance(words, str) else json.dumps(words, default=str) if words else ""


def _describe_cause(error: BaseException) -> str:
    """The words of the innermost cause that has any: SDKs wrap what happened in "Connection error."."""
    words = type(error).__name__
    for inner in _list_causes(error):
        words = f"{type(inner).__name__}: {inner}" if str(inner) else words
    return f"no usable answer: {words}"


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what caused it, the innermost last."""
    while error is not None:
        yield error
        error = error.__cause__


def estimate_request(request: Request, n: int, count_picture: Callable[[Picture], int]) -> int:
    """About how many tokens a request takes from a provider's limits, which count what it may use at most."""
    text = sum(estimate_tokens(message.content) for message in request.messages)
    calls = sum(estimate_tokens(call.arguments) for message in request.messages for call in message.calls)
    offers = sum(estimate_tokens(offer.description + offer.schema) for offer in request.tools)
    pictures = sum(count_picture(picture) for message in request.messages for picture in message.images)
    return text + calls + offers + pictures + n * request.max_tokens


def fit_reply(request: Request, reply: Reply) -> Reply:
    """A reply as the answer to a request: without completions and calls that nobody asked for, and with the calls that
    its texts make where tools were offered by text."""
    n = request.n
    if not request.tools:
        return replace(reply, texts=reply.texts[:n], finish=reply.finish[:n], calls=(), raw=())
    if not any(reply.calls):
        reply = read_textual(reply)
    calls, raw = reply.calls[:n], reply.raw[:n]
    return replace(
        reply,
        texts=reply.texts[:n],
        finish=reply.finish[:n],
        calls=calls if any(calls) else (),
        raw=raw if any(raw) else (),
    )


def read_completion(content: object, ending: object) -> tuple[str, str]:
    """A completion's text, and why it ended: in the server's word, or that there is no text where it claims none."""
    text, reason = read_content(content), read_word(ending)
    if text is None and (not reason or reason in OWN_END):
        reason = f"{NO_TEXT}: content is {_KINDS.get(type(content), 'no string')}"
    return text or "", reason


def read_content(content: object) -> str | None:
    """A completion's content as text: a string, or the texts in a list of parts. None: there is none, or it is no text.

    What UTF-8 cannot hold becomes "?".
    """
    if isinstance(content, list):
        texts = [read_content(entry) for entry in content if not _is_no_text(entry)]
        return "".join(text or "" for text in texts) if texts and None not in texts else None
    if isinstance(content, dict):
        return None if _is_no_text(content) else read_content(content.get("text"))
    return replace_surrogates(content) if isinstance(content, str) else None


def _is_no_text(entry: object) -> bool:
    """Whether a part says that it is something else than text: reasoning, a call of a tool, a picture."""
    return isinstance(entry, dict) and entry.get("type", "text") != "text"
