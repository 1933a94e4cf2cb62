"""A chat model server for measurements: OpenAI's protocol on loopback, a fixed latency, answers it was given.

`python -m opsmith_lab.bench.loopback LATENCY_S` reads one JSON object from stdin: a list of replies for each task text
(a request names its task in its last message). It prints its base URL and serves until stdin ends. Which reply a
request gets is decided by its seed. It runs in a process of its own, so that its time is not the client's.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence

from aiohttp import web

from opsmith.agents.prompt import read_prompt
from opsmith.models import Message
from opsmith.models.sdk import read_content
from opsmith.models.tokens import estimate_tokens


def make_app(latency_s: float, replies: Mapping[str, Sequence[str]]) -> web.Application:
    """POST /v1/chat/completions; `replies` by the task's text as `read_prompt` gives it."""
    replies_by_message: dict[str, Sequence[str]] = {}

    async def answer_request(request: web.Request) -> web.Response:
        started = asyncio.get_running_loop().time()
        body = await request.json()
        content = read_content(body["messages"][-1]["content"]) or ""
        if content not in replies_by_message:
            replies_by_message[content] = replies.get(read_prompt([Message("user", content)]).task) or ["no such task"]
        text = replies_by_message[content][int(body.get("seed", 0)) % len(replies_by_message[content])]
        tokens = sum(estimate_tokens(read_content(message["content"]) or "") for message in body["messages"])
        await asyncio.sleep(latency_s - (asyncio.get_running_loop().time() - started))
        return web.json_response(_format_completion(body["model"], text, tokens))

    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/chat/completions", answer_request)
    return app


def _format_completion(model: str, text: str, tokens: int) -> dict[str, object]:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": tokens, "completion_tokens": estimate_tokens(text)}
    return {"id": "x", "object": "chat.completion", "created": 0, "model": model, "choices": [choice], "usage": usage}


async def main(latency_s: float) -> None:
    """Serve until stdin ends."""
    runner = web.AppRunner(make_app(latency_s, json.loads(sys.stdin.readline())), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
