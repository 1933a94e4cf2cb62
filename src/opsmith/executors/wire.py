"""Messages between the machines of a run: JSON texts of our records, checked on arrival; never a pickle of ours.

An answer is `{"found": ...}`, or `{"kind": ..., "problem": ...}` for an error of that class. `"again": true` says that
the machine itself may be at fault, so that another one's answer is worth having.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from opsmith.errors import OpsmithError, ProviderError, TargetError, TaskError, UsageError, VerifierError
from opsmith.records import to_json

T = TypeVar("T")

_KINDS: dict[str, type[OpsmithError]] = {
    kind.__name__: kind for kind in (UsageError, TaskError, TargetError, ProviderError, VerifierError)
}


def pack_message(data: Any) -> bytes:
    """A record or plain data as JSON; in ASCII, so that any text that Python can hold comes through."""
    return json.dumps(to_json(data)).encode("ascii")


def unpack_message(data: Any) -> dict[str, Any]:
    """A JSON mapping. Raises ValueError for anything else."""
    mapping = json.loads(data)
    if not isinstance(mapping, dict):
        raise ValueError(f"a message between machines: given {type(mapping).__name__}; expected a mapping")
    return mapping


def read_record(kind: type[T], data: Any) -> T:
    """A record of that class from plain data. Raises ValueError that names the first wrong field."""
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"a message between machines: {kind.__name__} {place}: {first['msg']}") from None


def refuse_error(error: Exception) -> dict[str, Any]:
    """An error as an answer; one that is none of ours is a failure of ours, not of the candidate."""
    retryable = isinstance(error, ProviderError) and error.retryable
    name = next((name for name, kind in _KINDS.items() if isinstance(error, kind)), VerifierError.__name__)
    text = str(error) if isinstance(error, OpsmithError) else f"{type(error).__name__}: {error}"
    return {"kind": name, "problem": text, "again": retryable or name == VerifierError.__name__}


def open_answer(answer: dict[str, Any]) -> Any:
    """The result in an answer. Raises the error that it tells of."""
    if "found" in answer:
        return answer["found"]
    kind, problem = _KINDS.get(str(answer.get("kind")), VerifierError), str(answer.get("problem"))
    if kind is ProviderError:
        raise ProviderError(problem, retryable=bool(answer.get("again")))
    raise kind(problem)
