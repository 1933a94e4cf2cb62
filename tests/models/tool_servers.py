"""Servers of both protocols that call tools, and take a conversation back only as the real ones do.

    talk = ToolTalk([Step((Call("check", {"source": "x"}),), thought="hm"), "impl: x"])   # in turn; the last one for ever
    with AnthropicServer(talk) as server: ...

A conversation that a real server would refuse gets its 400: a call without its result, a result of no call, arguments
that are no JSON, roles out of turn, thoughts that were changed or left out. `toolless(talk, words)` refuses tools in a
server's own words and is asked by text then.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .servers import Fault, refused

THINKING = 25  # tokens of thought that a reply with a thought tells


@dataclass(frozen=True)
class Call:
    """A call as a server sends it: `arguments` and `id` may be anything; id None: the server makes one."""

    name: object
    arguments: object = None
    id: object = None


@dataclass(frozen=True)
class Step:
    """One reply: calls, with a text beside them and thoughts before them."""

    calls: tuple[Call, ...] = ()
    text: str | None = None
    thought: str = ""


Body = dict[str, Any]


class ToolTalk:
    """A server's replies in turn, by how many turns of the assistant's a request holds; the last one again and again."""

    def __init__(self, steps: Sequence[Step | str]) -> None:
        self.steps = [Step(text=step) if isinstance(step, str) else step for step in steps]
        self.thoughts: dict[str, list[Body]] = {}  # blocks of thought that were sent, by the id of the first call after
        self.problems: list[str] = []  # what was refused

    def __call__(self, body: Body) -> Body | Fault:
        is_chat = "max_completion_tokens" in body or "cache_control" not in body
        problem = next(find_chat_problems(body) if is_chat else self.find_block_problems(body), "")
        if problem:
            self.problems.append(problem)
            return refused(problem)
        turns = sum(message["role"] == "assistant" for message in body["messages"])
        step = self.steps[min(turns, len(self.steps) - 1)]
        return self.write_chat(body, step, turns) if is_chat else self.write_blocks(body, step, turns)

    def write_chat(self, body: Body, step: Step, turn: int) -> Body:
        message: Body = {"role": "assistant", "content": step.text}
        if step.calls:
            message["tool_calls"] = [
                {
                    "id": call.id if call.id is not None else f"call_{turn}_{place}",
                    "type": "function",
                    "function": {"name": call.name, "arguments": _dump(call.arguments)},
                }
                for place, call in enumerate(step.calls)
            ]
        usage: Body = {"prompt_tokens": 100, "completion_tokens": 40}
        if step.thought:
            message["reasoning_content"] = step.thought
            usage["completion_tokens_details"] = {"reasoning_tokens": THINKING}
        finish = "tool_calls" if step.calls else "stop"
        return {"model": body["model"], "choices": [{"message": message, "finish_reason": finish}], "usage": usage}

    def write_blocks(self, body: Body, step: Step, turn: int) -> Body:
        thoughts = [_sign_thought(step.thought), {"type": "redacted_thinking", "data": "AAAA"}] if step.thought else []
        words = [] if step.text is None else [{"type": "text", "text": step.text}]
        uses = [
            {
                "type": "tool_use",
                "id": call.id if call.id is not None else f"toolu_{turn}_{place}",
                "name": call.name,
                "input": {} if call.arguments is None else call.arguments,
            }
            for place, call in enumerate(step.calls)
        ]
        if thoughts and uses:
            self.thoughts[str(uses[0]["id"])] = thoughts
        usage: Body = {"input_tokens": 100, "output_tokens": 40}
        if thoughts:
            usage["output_tokens_details"] = {"thinking_tokens": THINKING}
        stop = "tool_use" if uses else "end_turn"
        return {"model": body["model"], "content": [*thoughts, *words, *uses], "stop_reason": stop, "usage": usage}

    def find_block_problems(self, body: Body) -> Iterator[str]:
        """What Anthropic refuses."""
        turns = body["messages"]
        if "thinking" in body and "temperature" in body:
            yield "`temperature` may only be set to 1 when thinking is enabled"
        for place, (turn, before) in enumerate(zip(turns, [None, *turns], strict=False)):
            if before is not None and before["role"] == turn["role"]:
                yield f"messages.{place}: roles must alternate"
            blocks = turn["content"] if isinstance(turn["content"], list) else []
            uses = [block["id"] for block in blocks if block["type"] == "tool_use"]
            after = turns[place + 1]["content"] if place + 1 < len(turns) else []
            results = [block.get("tool_use_id") for block in after if isinstance(block, dict)][: len(uses)]
            if sorted(uses) != sorted(map(str, results)):
                yield f"messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after"
            sent = [block for block in blocks if "thinking" in block["type"]]
            if uses and sent != self.thoughts.get(uses[0], []):
                yield f"messages.{place}: `thinking` blocks cannot be modified"
            if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
                yield f"messages.{place}: text content blocks must contain non-whitespace text"


def find_chat_problems(body: Body) -> Iterator[str]:
    """What OpenAI refuses, and vLLM and DeepSeek beside."""
    pending: list[str] = []
    for place, message in enumerate(body["messages"]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in pending:
                yield f"messages[{place}]: a message of role 'tool' must follow a call with its id"
            else:
                pending.remove(message["tool_call_id"])
            continue
        if pending:
            yield f"messages[{place}]: tool_call_ids did not have response messages: {pending}"
        if "reasoning_content" in message:
            yield f"messages[{place}].reasoning_content: Extra inputs are not permitted"
        calls = message.get("tool_calls", [])
        pending = [call["id"] for call in calls]
        for call in calls:
            json.loads(call["function"]["arguments"])
    if pending:
        yield f"tool_call_ids did not have response messages: {pending}"


def toolless(talk: Callable[[Body], Any], words: str, status: int = 400) -> Callable[[Body], Any]:
    """A server that takes no tools, and says so in these words."""

    def answer(body: Body) -> Any:
        return refused(words, status=status) if "tools" in body else talk(body)

    return answer


def insistent(talk: ToolTalk) -> Callable[[Body], Any]:
    """A server that wants its reasoning back with the calls that followed, as DeepSeek's newer models do."""

    def answer(body: Body) -> Any:
        turns = [message for message in body["messages"] if message.get("tool_calls")]
        if any("reasoning_content" not in message for message in turns):
            return refused("Missing `reasoning_content` field in the assistant message at message index 2")
        return talk({**body, "messages": [_drop_thoughts(message) for message in body["messages"]]})

    return answer


def _drop_thoughts(message: Body) -> Body:
    return {name: value for name, value in message.items() if name != "reasoning_content"}


def _dump(arguments: object) -> object:
    """Texts as they are, so that they may be broken; what JSON has not as the text that they are."""
    return json.dumps(arguments) if isinstance(arguments, dict) else arguments


def _sign_thought(text: str) -> Body:
    return {"type": "thinking", "thinking": text, "signature": hashlib.sha256(text.encode()).hexdigest()}
