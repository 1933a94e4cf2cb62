"""The official SDK's server over a `Service`: which request is answered by what; and standard input and output."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
)
from starlette.requests import Request

from opsmith.errors import OpsmithError
from opsmith.mcp.service import SCHEME, Service
from opsmith.tools import ToolOutcome, ToolResult

NAME = "opsmith"
INSTRUCTIONS = (
    "Write operator programs and have them judged. `list_tasks`, then `prompt` for a task and its language; `check` "
    "and `verify` your program until it is right; `submit` it where the user keeps solutions. A verdict tells how far "
    "a program came; sizes that it is judged at beside the shown ones are not told."
)
_Context = ServerRequestContext[Any, Request]


def make_server(service: Service) -> Server[Any]:
    """A server for any number of clients."""

    async def list_tools(_: _Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        tools = [
            Tool(name=tool.name, description=tool.description, input_schema=dict(tool.schema))
            for tool in service.list_tools()
        ]
        return ListToolsResult(tools=tools)

    async def call_tool(context: _Context, asked_call: CallToolRequestParams) -> CallToolResult:
        """Over HTTP what nobody waits for any longer is cancelled: no answer can be fetched later."""
        client, arguments = _name_client(context), asked_call.arguments or {}
        result = ToolResult("nobody waits for it", ToolOutcome.ERROR)
        async with anyio.create_task_group() as group:
            if context.request is not None:
                group.start_soon(_cancel_when_left, context.request, group.cancel_scope)
            result = await service.call_tool(asked_call.name, arguments, client, _name_connection(context))
            group.cancel_scope.cancel()
        content = [TextContent(type="text", text=result.text)]
        return CallToolResult(content=list(content), is_error=result.outcome is not ToolOutcome.OK)

    async def list_resources(_: _Context, __: PaginatedRequestParams | None) -> ListResourcesResult:
        try:
            resources = [
                Resource(uri=entry.uri, name=entry.name, description=entry.description, mime_type=entry.media)
                for entry in service.list_resources()
            ]
        except OpsmithError as error:
            raise MCPError(INTERNAL_ERROR, str(error)) from None
        return ListResourcesResult(resources=resources)

    async def list_templates(_: _Context, __: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        templates = [
            ResourceTemplate(uri_template=f"{SCHEME}language/{{target}}", name="the reference of a language"),
            ResourceTemplate(uri_template=f"{SCHEME}runs/{{run}}/experiences", name="solved tasks of a run"),
        ]
        return ListResourceTemplatesResult(resource_templates=templates)

    async def read_resource(_: _Context, asked_text: ReadResourceRequestParams) -> ReadResourceResult:
        try:
            resource = service.read_resource(str(asked_text.uri))
        except OpsmithError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from None
        content = TextResourceContents(uri=asked_text.uri, mime_type=resource.media, text=resource.text)
        return ReadResourceResult(contents=[content])

    return Server(
        NAME,
        version=metadata.version("opsmith"),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


async def serve_stdio(service: Service) -> None:
    """One client, until its end of our standard input is closed. Only the protocol is on our standard output."""
    server = make_server(service)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


async def _cancel_when_left(request: Request, work: anyio.CancelScope) -> None:
    """Once who sent a request has closed its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    work.cancel()


def _name_connection(context: _Context) -> str:
    """Which of the clients over HTTP it is: its session, or for want of one its address and name."""
    if context.request is None:
        return ""
    address = context.request.client.host if context.request.client else "?"
    return context.request.headers.get(MCP_SESSION_ID_HEADER) or f"{address} {_name_client(context)}"


def _name_client(context: _Context) -> str:
    """What a client calls itself; nobody vouches for it."""
    parameters = context.session.client_params
    return parameters.client_info.name if parameters is not None else ""
