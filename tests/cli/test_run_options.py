"""The options of a run are fields of its settings: of their kind, with their defaults, named so in messages."""

import json
import re
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic.fields import FieldInfo

from opsmith.cli.run_options import SETTINGS
from opsmith.config import name_option
from opsmith.settings import PATH_OF, Settings

IN_OTHER_WORDS = {"target_options": list[str]}  # NAME=VALUE several times


def _find_field(name: str) -> FieldInfo:
    group: Any = Settings
    for step in PATH_OF[name]:
        group = group.model_fields[step].annotation
    return group.model_fields[name]


def _read_kind(annotation: Any) -> Any:
    """Without None and limits: text for one of several words, a list for a tuple."""
    match get_origin(annotation):
        case origin if origin in (Union, UnionType):
            [annotation] = [kind for kind in get_args(annotation) if kind is not type(None)]
            return _read_kind(annotation)
        case origin if origin is Annotated:
            return _read_kind(get_args(annotation)[0])
        case origin if origin is Literal:
            return str
        case origin if origin is tuple:
            return list[_read_kind(get_args(annotation)[0])]
    return annotation


@pytest.mark.parametrize("name", SETTINGS)
def test_an_option_is_a_field_of_the_settings(name: str) -> None:
    annotation, option = get_args(SETTINGS[name])
    field = _find_field(name)
    assert _read_kind(annotation) == IN_OTHER_WORDS.get(name, _read_kind(field.annotation))
    stated = option.default if isinstance(option.default, str) else f"--{name.replace('_', '-')}"
    assert name_option(name).split("/")[0] == stated.split("/")[0]
    if told := re.search(r"default ([\w.]+?)\.?$", option.help):
        default = {"yes": True}.get(told[1], told[1])
        assert str(field.default) == str(default) or float(told[1]) == field.default


def test_what_is_given_twice_is_added_or_refused_and_never_lost(opsmith) -> None:
    both = opsmith("run", "--tasks", "bmm_0", "--tasks", "norm_0,index_0", "--dry-run", "--json")
    one = opsmith("run", "--tasks", "bmm_0", "--dry-run", "--json")
    requests = [json.loads(done.out)["run"]["first"]["requests"] for done in (both, one)]
    assert requests[0] == 3 * requests[1] > 0
    refused = opsmith("run", "--seed", "1", "--seed", "2", "--dry-run")
    assert refused.code == 2
    assert "--seed: given 2 times; expected once" in refused.err
