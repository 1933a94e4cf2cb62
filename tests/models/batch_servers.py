"""Batch APIs on loopback, in the providers' wire formats. A batch ends when it has been looked at `looks` times.

`answer` is asked once for each request of a batch; a `Fault` makes its entry an error, None leaves the entry out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web

from .servers import AnthropicServer, Fault, OpenAIServer


class _Batches:
    """What both servers keep."""

    looks = 1
    damaged: Sequence[str] = ()  # more lines of every result
    doubt: Fault | None = None  # what is answered once after a batch was accepted
    busy: Fault | None = None  # what is answered once before a batch is accepted

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.batches: list[list[dict[str, Any]]] = []  # the entries of every batch that was handed in
        self.looked: list[int] = []
        self.made: dict[tuple[str, str], Any] = {}

    def _entries(self, batch: str) -> list[dict[str, Any]]:
        return self.batches[int(batch.removeprefix("batch_"))]

    def _accept(self, entries: list[dict[str, Any]]) -> str:
        self.batches.append(entries)
        self.looked.append(0)
        return f"batch_{len(self.batches) - 1}"

    async def _told(self, request: web.Request, accept: Callable[[], dict[str, Any]]) -> web.StreamResponse:
        """What handing in a batch is answered with."""
        if self.busy is not None:
            fault, self.busy = self.busy, None
            return await self._fail(request, fault)  # type: ignore[attr-defined, no-any-return]
        about = accept()
        if self.doubt is not None:
            fault, self.doubt = self.doubt, None
            return await self._fail(request, fault)  # type: ignore[attr-defined, no-any-return]
        return web.json_response(about)

    def _is_over(self, batch: str) -> bool:
        at = int(batch.removeprefix("batch_"))
        self.looked[at] += 1
        return self.looked[at] > self.looks

    def _found(self, batch: str, entry: dict[str, Any], body: dict[str, Any]) -> Any:
        """What became of an entry: made once, the same for ever."""
        key = batch, entry["custom_id"]
        if key not in self.made:
            self.requests.append(body)  # type: ignore[attr-defined]
            self.made[key] = self._answer(body) if callable(self._answer) else self._answer  # type: ignore[attr-defined]
        return self.made[key]

    def _write_reply(self, body: dict[str, Any], answer: Any) -> dict[str, Any]:
        return answer if isinstance(answer, dict) else self.reply(body, answer)  # type: ignore[attr-defined,no-any-return]


class OpenAIBatchServer(_Batches, OpenAIServer):
    """/v1/files and /v1/batches."""

    def more_routes(self, app: web.Application) -> None:
        self._files: dict[str, bytes] = {}
        app.router.add_post("/v1/files", self._upload)
        app.router.add_get("/v1/files/{file}/content", self._content)
        app.router.add_post("/v1/batches", self._create)
        app.router.add_get("/v1/batches/{batch}", self._state)

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert form["purpose"] == "batch"
        name = f"file_{len(self._files)}"
        self._files[name] = form["file"].file.read()
        return web.json_response({"id": name, "object": "file", "bytes": len(self._files[name])})

    async def _create(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        entries = [json.loads(line) for line in self._files[body["input_file_id"]].splitlines()]
        assert (body["endpoint"], body["completion_window"]) == ("/v1/chat/completions", "24h")
        about = {"object": "batch", "status": "validating"}
        return await self._told(request, lambda: {"id": self._accept(entries), **about})

    async def _state(self, request: web.Request) -> web.Response:
        batch = request.match_info["batch"]
        if not self._is_over(batch):
            return web.json_response({"id": batch, "object": "batch", "status": "in_progress"})
        files = {"output_file_id": f"{batch}_out", "error_file_id": f"{batch}_errors"}
        return web.json_response({"id": batch, "object": "batch", "status": "completed", **files})

    async def _content(self, request: web.Request) -> web.Response:
        batch, _, kind = request.match_info["file"].rpartition("_")
        rows = []
        for entry in self._entries(batch):
            found = self._found(batch, entry, entry["body"])
            if found is not None and isinstance(found, Fault) == (kind == "errors"):
                status, body = (found.status, found.body) if isinstance(found, Fault) else (200, None)
                response = {"status_code": status, "body": body or self._write_reply(entry["body"], found)}
                rows.append({"id": "x", "custom_id": entry["custom_id"], "response": response, "error": None})
        return web.Response(text="\n".join([*map(json.dumps, rows), *self.damaged]), content_type="application/jsonl")


class AnthropicBatchServer(_Batches, AnthropicServer):
    """/v1/messages/batches."""

    def more_routes(self, app: web.Application) -> None:
        app.router.add_post("/v1/messages/batches", self._create)
        app.router.add_get("/v1/messages/batches/{batch}", self._state)
        app.router.add_get("/v1/messages/batches/{batch}/results", self._results)

    async def _create(self, request: web.Request) -> web.StreamResponse:
        entries = (await request.json())["requests"]
        return await self._told(request, lambda: self._about(self._accept(entries), False))

    async def _state(self, request: web.Request) -> web.Response:
        batch = request.match_info["batch"]
        return web.json_response(self._about(batch, self._is_over(batch)))

    def _about(self, batch: str, over: bool) -> dict[str, Any]:
        url = f"{self.url}/v1/messages/batches/{batch}/results" if over else None
        status = "ended" if over else "in_progress"
        return {"id": batch, "type": "message_batch", "processing_status": status, "results_url": url}

    async def _results(self, request: web.Request) -> web.Response:
        rows, batch = [], request.match_info["batch"]
        for entry in self._entries(batch):
            found = self._found(batch, entry, entry["params"])
            if isinstance(found, Fault):
                rows.append({"custom_id": entry["custom_id"], "result": {"type": "errored", "error": found.body}})
            elif found is not None:
                result = {"type": "succeeded", "message": self._write_reply(entry["params"], found)}
                rows.append({"custom_id": entry["custom_id"], "result": result})
        return web.Response(text="\n".join([*map(json.dumps, rows), *self.damaged]), content_type="application/x-jsonl")
