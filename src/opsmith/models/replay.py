"""Recorded conversations, written and played back: `replay:FILE` answers each request with the reply recorded for it.

The file is JSON lines. The first says what was recorded, each further line is one reply under the hash of its request:

    {"replay": 1, "model": "openai/gpt-4o", "is_language_model": true, "context_window": 128000, "secret": "..."}
    {"key": "...", "texts": ["..."], "usage": {"requests": 1, ...}, "model": "gpt-4o-2024-11-20", "finish": ["stop"]}

`secret` is the recorded run's, which a run that plays it back has too: its programs meet the same hidden sizes. A
recording without one has a fixed one (`EARLIER`). Usage is that of the recording. Of two lines with one key the first
counts. A request that was not recorded is a ProviderError: a replay never makes anything up.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from opsmith.errors import ProviderError, TaskError, UsageError
from opsmith.models import MOST_TOKENS, Reply, Request, ToolCall
from opsmith.records import Diagnostic, Usage, content_hash, dumps, to_json

EARLIER = "a recording without a secret"
MAX_LINE = 8 * 2**20  # bytes
MAX_FILE = 2**30  # bytes; a run of the paper's size records about 100 MB
MOST_USD = 1e6  # of one reply
MAX_KEYS = 16  # of one mapping
MAX_CALLS = 64  # calls of one text
MAX_TEXTS = 4096  # of one reply: each wrong entry is a finding of its own, which takes a hundred times its own size


class _Outside(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _few_keys(cls, data: Any) -> Any:
        if isinstance(data, dict) and len(data) > MAX_KEYS:
            raise ValueError(f"{len(data)} keys, at most {MAX_KEYS} are known")
        return data


class _Header(_Outside):
    replay: Literal[1]
    model: str
    is_language_model: bool
    context_window: int | None = Field(default=None, gt=0)
    secret: str | None = Field(default=None, min_length=1, max_length=256)


class _Usage(_Outside):
    requests: int = Field(default=0, ge=0, le=MAX_TEXTS)
    input_tokens: int = Field(default=0, ge=0, le=MOST_TOKENS)
    output_tokens: int = Field(default=0, ge=0, le=MOST_TOKENS)
    cached_tokens: int = Field(default=0, ge=0, le=MOST_TOKENS)
    cost_usd: float | None = Field(default=None, ge=0, le=MOST_USD)
    reasoning_tokens: int = Field(default=0, ge=0, le=MOST_TOKENS)


class _Call(_Outside):
    id: str
    name: str
    arguments: str


class _Line(_Outside):
    key: str
    texts: list[str] = Field(max_length=MAX_TEXTS)
    usage: _Usage = Field(default_factory=_Usage)
    model: str = ""
    finish: list[str] = Field(default_factory=list, max_length=MAX_TEXTS)
    blind: bool = False
    calls: list[Annotated[list[_Call], Field(max_length=MAX_CALLS)]] = Field(default_factory=list, max_length=MAX_TEXTS)
    raw: list[str] = Field(default_factory=list, max_length=MAX_TEXTS)

    def make_reply(self) -> Reply:
        calls = tuple(tuple(ToolCall(call.id, call.name, call.arguments) for call in listed) for listed in self.calls)
        usage, finish = Usage(**self.usage.model_dump()), tuple(self.finish)
        return Reply(tuple(self.texts), usage, self.model, finish, self.blind, calls, tuple(self.raw))


Schema = TypeVar("Schema", bound=_Outside)


class ReplayModel:
    """The replies of a file, read once. Raises UsageError (no file) or TaskError (a line is wrong)."""

    def __init__(self, path: str | Path) -> None:
        self.name = f"replay:{path}"
        header, self._replies = _read_recording(Path(path))
        self.recorded = header.model
        self.is_language_model = header.is_language_model
        self.context_window = header.context_window
        self.secret = header.secret or EARLIER

    async def complete(self, request: Request) -> Reply:
        reply = self._replies.get(hash_request(request))
        if reply is None or not 1 <= len(reply.texts) <= request.n:
            held = "no reply to it" if reply is None else f"a reply of {len(reply.texts)} texts"
            raise ProviderError(
                f"{self.name}: given a request for {request.n} texts (temperature {request.temperature}, seed "
                f"{request.seed}), of which {len(self._replies)} recorded requests hold {held}; expected one that was "
                f"recorded; try: the tasks, settings and version of the recording, or record it again"
            )
        return reply

    async def close(self) -> None:
        pass


def hash_request(request: Request) -> str:
    """The name of a request: the hash of its messages, n, temperature, max_tokens and seed."""
    data = {key: value for key, value in to_json(request).items() if key != "attempt"}
    return content_hash(dumps(data | {"temperature": float(request.temperature)}))


def record(
    path: str | Path,
    pairs: Iterable[tuple[Request, Reply]],
    *,
    model: str,
    is_language_model: bool,
    context_window: int | None = None,
    secret: str | None = None,
) -> None:
    """Write a file that `replay:FILE` plays back; it appears whole or not at all.

    `secret`: of the run that is recorded (`Store.read_secret`); without it verdicts may be others at hidden sizes.
    """
    known = {"model": model, "is_language_model": is_language_model, "context_window": context_window}
    header = {"replay": 1, **known, **({} if secret is None else {"secret": secret})}
    temporary = Path(f"{path}.part")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(json.dumps(header) + "\n")
        file.writelines(dumps({"key": hash_request(request), **to_json(reply)}) + "\n" for request, reply in pairs)
    os.replace(temporary, path)


def _read_recording(path: Path) -> tuple[_Header, dict[str, Reply]]:
    try:
        if not path.is_file():
            raise UsageError(f"replay:{path}: does not exist; expected a file that `record` wrote; try: check the path")
        size = path.stat().st_size
        if size > MAX_FILE:
            raise TaskError(f"replay:{path}: given {size} bytes; expected at most {MAX_FILE}; try: several files")
        return _parse_recording(path)
    except OSError as error:
        raise UsageError(
            f"replay:{path}: cannot be read: {error.strerror}; try: check the path and its rights"
        ) from None


def _parse_recording(path: Path) -> tuple[_Header, dict[str, Reply]]:
    lines = _read_lines(path)
    number, first = next(lines, (1, b""))
    header = _validate_line(_Header, path, number, first)
    replies: dict[str, Reply] = {}
    for number, text in lines:
        line = _validate_line(_Line, path, number, text)
        replies.setdefault(line.key, line.make_reply())
    return header, replies


def _read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers from 1; never more than MAX_LINE bytes at a time."""
    with path.open("rb") as file:
        number = 0
        while text := file.readline(MAX_LINE + 1):
            number += 1
            if len(text) > MAX_LINE:
                raise _make_fault(
                    path, number, f"more than {MAX_LINE} bytes", "a line of at most that", "record it again"
                )
            if text.strip():
                yield number, text


def _validate_line(schema: type[Schema], path: Path, number: int, text: bytes) -> Schema:
    try:
        return schema.model_validate_json(text)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(step) for step in problem["loc"]) or "the line"
    expected = "a header" if schema is _Header else "a recorded reply"
    raise _make_fault(path, number, f"{place}: {problem['msg']}", expected, "delete the line, or record the file again")


def _make_fault(path: Path, number: int, problem: str, expected: str, remedy: str) -> TaskError:
    finding = Diagnostic("TASK", f"replay:{path}", problem, expected, remedy, line=number)
    return TaskError(str(finding), [finding])
