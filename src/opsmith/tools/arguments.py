"""Arguments of tools: strict models of bounded length, read from what a model wrote.

A tool's JSON schema is made from its model. What does not fit is answered with where, given, expected and what to try.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from opsmith.records import Diagnostic, printable

MOST_ARGUMENTS = 1 << 18  # characters of a call's arguments; longer ones are not read
MOST_PROGRAM = 1 << 17  # characters
MOST_QUOTED = 80  # characters of what was given that an answer repeats

Program = Annotated[
    str, Field(min_length=1, max_length=MOST_PROGRAM, description="The whole program, as an answer would hold it.")
]


class ToolArguments(BaseModel):
    """The arguments of a tool; each of them is bounded."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ProgramArguments(ToolArguments):
    """The arguments of a tool that looks at one program."""

    program: Program


class WrongArgumentsError(Exception):
    """What was given is not what the tool takes; the text says so to the model."""


def write_schema(kind: type[ToolArguments]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments, without titles, which say nothing."""
    schema: dict[str, Any] = _drop_titles(kind.model_json_schema())
    schema.pop("description", None)
    schema.setdefault("properties", {})
    return schema


def read_arguments(tool: str, kind: type[ToolArguments], text: str) -> ToolArguments:
    """The arguments in a JSON text, as a model wrote it; "" is no argument. Raises WrongArgumentsError."""
    if len(text) > MOST_ARGUMENTS:
        raise _explain_arguments(tool, f"{len(text)} characters", f"at most {MOST_ARGUMENTS}", "a shorter program")
    try:
        values = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        expected = f"a JSON object with {_list_names(kind)}"
        raise _explain_arguments(tool, f"no JSON: {_quote_text(text)}", expected, "close strings and braces") from None
    return check_arguments(tool, kind, values)


def check_arguments(tool: str, kind: type[ToolArguments], values: Any) -> ToolArguments:
    """The arguments as plain values. Raises WrongArgumentsError."""
    if not isinstance(values, Mapping):
        raise _explain_arguments(tool, f"a JSON {type(values).__name__}", f"an object with {_list_names(kind)}", "")
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        raise _explain_mistake(tool, kind, error) from None
    except RecursionError:
        raise _explain_arguments(tool, "values in values without end", _list_names(kind), "") from None


def _explain_mistake(tool: str, kind: type[ToolArguments], error: ValidationError) -> WrongArgumentsError:
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(str(step) for step in first["loc"])[:MOST_QUOTED]
    is_missing = first["type"] == "missing"
    quote = "nothing" if is_missing else f"{type(first['input']).__name__} {_quote_text(str(first['input']))}"
    where = f"{tool}, argument {printable(place)!r}" if place else tool
    expected = "a value" if is_missing else first["msg"].removeprefix("Input should be ")
    remedy = f"state {printable(place)!r} too" if is_missing else f"no arguments but {_list_names(kind)}"
    return _explain_arguments(where, quote, expected, remedy)


def _explain_arguments(where: str, given: str, expected: str, remedy: str) -> WrongArgumentsError:
    return WrongArgumentsError(Diagnostic("FORMAT", where, given, expected, remedy).block())


def _list_names(kind: type[ToolArguments]) -> str:
    return ", ".join(repr(name) for name in kind.model_fields) or "no arguments"


def _quote_text(text: str) -> str:
    short = text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}... ({len(text)} characters)"
    return repr(printable(short))


def _drop_titles(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            key: _drop_titles(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)
        }
    return [_drop_titles(entry) for entry in schema] if isinstance(schema, list) else schema
