"""What goes between machines comes out as it went in, and anything else is refused with its place."""

from __future__ import annotations

import pytest

from opsmith.errors import OpsmithError, ProviderError, TargetError, TaskError, UsageError, VerifierError
from opsmith.executors.wire import open_answer, pack_message, read_record, refuse_error, unpack_message
from opsmith.models import ExhaustedError, Message, Reply, Request
from opsmith.records import Task, Usage

REQUEST = Request((Message("system", "a\u2028b"), Message("user", "task: é")), 2, 0.4, 64, 2**62, 3)
REPLY = Reply(("one", ""), Usage(1, 20, 3, 0, 0.1 + 0.2), "embedded", ("stop", "length"))
UNPRICED = Reply(("one",), Usage(1, 20, 3, 0, None))
TASK = Task("sum_0", "step", "inputs: {}\n", None, "sum", "a/b.yaml", "inputs: {}\n")


@pytest.mark.parametrize("record", [REQUEST, REPLY, UNPRICED, TASK])
def test_a_record_comes_out_as_it_went_in(record):
    assert read_record(type(record), unpack_message(pack_message(record))) == record


def test_any_text_comes_through():
    odd = "\ud800 \x00 \U0001f600"
    assert unpack_message(pack_message({"source": odd})) == {"source": odd}


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        (Reply, {"texts": ["a", 1], "usage": {}}, "Reply texts.1"),
        (Reply, {"texts": ["a"]}, "Reply usage"),
        (Reply, {"texts": ["a"], "usage": {"requests": "many"}}, "Reply usage.requests"),
        (Request, {"messages": [{"role": "root", "content": ""}]}, "Request messages.0.role"),
        (Task, ["sum_0"], "Task"),
    ],
)
def test_what_is_no_record_is_refused_with_its_place(kind, data, words):
    with pytest.raises(ValueError, match=words):
        read_record(kind, data)


@pytest.mark.parametrize("data", [b"[1]", b"", b"{", b"\x80\x04N."])
def test_what_is_no_mapping_is_refused(data):
    with pytest.raises(ValueError, match=r".*"):
        unpack_message(data)


@pytest.mark.parametrize(
    ("error", "kind", "again"),
    [
        (UsageError("no"), UsageError, False),
        (TaskError("wrong file"), TaskError, False),
        (TargetError("line 3"), TargetError, False),
        (VerifierError("worker gone"), VerifierError, True),
        (ProviderError("worker gone", retryable=True), ProviderError, True),
        (ExhaustedError("no more"), ProviderError, False),
        (OpsmithError("what"), VerifierError, True),
    ],
)
def test_an_error_keeps_its_class_and_message(error, kind, again):
    answer = unpack_message(pack_message(refuse_error(error)))
    assert answer["again"] is again
    with pytest.raises(kind) as caught:
        open_answer(answer)
    assert str(caught.value) == str(error)
    assert getattr(caught.value, "retryable", again) is again


def test_an_error_of_nobody_is_ours():
    with pytest.raises(VerifierError, match="KeyError: 'lost'"):
        open_answer(refuse_error(KeyError("lost")))
