"""Client made with the official Python SDK, which asks for the stateless era and falls back to the stateful one.

    python sdk.py SCENARIO --stdio '["command","argument"]' | --url URL [--token T]
           [--tool NAME] [--args JSON] [--answer JSON] [--timeout MS] [--limit MS]

Plays the scenarios described in `scenarios.mjs`, prints one JSON object and exits with 0, or with 1 when the scenario
could not be played to its end.
"""

import argparse
import json
import os
import sys
from contextlib import asynccontextmanager

import anyio
import httpx2
from mcp import MCPError, StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult, Implementation, ToolListChangedNotification

MODERN = "2026-07-28"


def plain(model):
    """A model of the SDK as the JSON it has on the wire."""
    return model.model_dump(by_alias=True, mode="json", exclude_unset=True)


def describe(error):
    """The facts of an error, of the first one where several were gathered on the way."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    facts = {"name": type(error).__name__, "message": str(error)}
    if isinstance(error, MCPError):
        facts |= {"code": error.code, "data": error.error.data}
    return facts


class Player:
    """Plays one scenario with a connected client."""

    def __init__(self, options):
        self.options = options
        self.arguments = json.loads(options.args)
        self.asked = []
        self.changed = anyio.Event()

    @asynccontextmanager
    async def transport(self):
        if self.options.stdio:
            command, *arguments = json.loads(self.options.stdio)
            server = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
            async with stdio_client(server) as streams:
                yield streams
        else:
            headers = {"Authorization": f"Bearer {self.options.token}"} if self.options.token else {}
            async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
                async with streamable_http_client(self.options.url, http_client=http) as streams:
                    yield streams

    async def answer(self, _context, params):
        self.asked.append(plain(params))
        return ElicitResult(action="accept", content=json.loads(self.options.answer))

    async def notice(self, message):
        if isinstance(message, ToolListChangedNotification):
            self.changed.set()

    def client(self):
        eliciting = self.options.scenario == "elicit"
        return Client(
            self.transport(),
            client_info=Implementation(name="pml-test-python", version="1.0.0"),
            elicitation_callback=self.answer if eliciting else None,
            message_handler=self.notice,
            cache=None,
        )

    async def names(self, client):
        names, cursor = [], None
        while True:
            page = await client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                return names

    async def call(self, client, on_progress=None):
        result = await client.call_tool(self.options.tool, self.arguments, progress_callback=on_progress)
        return plain(result)

    async def play_list(self, client):
        info = client.server_info
        return {"serverInfo": plain(info) if info else None, "tools": await self.names(client)}

    async def play_call(self, client):
        return {"result": await self.call(client)}

    async def play_progress(self, client):
        progress = []

        async def note(value, _total, _message):
            progress.append(value)

        result = await self.call(client, note)
        return {"progress": progress, "result": result}

    async def play_long(self, client):
        progress, requests = [], 0
        limit = self.options.limit / 1000 if self.options.limit else None

        async def note(value, _total, _message):
            progress.append(value)

        name, arguments = self.options.tool, self.arguments
        while True:
            requests += 1
            result = plain(await client.call_tool(name, arguments, limit, note))
            meta, told = result.get("_meta", {}), result.get("structuredContent", {})
            if "running" not in (meta.get("pml/status"), told.get("status")):
                return {"progress": progress, "requests": requests, "result": result}
            arguments = {"workflow_id": meta.get("pml/workflowId") or told["workflowId"]}
            name = "pml_continue"

    async def play_cancel(self, client):
        progress, outcome = [], {"ended": "cancelled"}

        async def note(value, _total, _message):
            progress.append(value)
            scope.cancel()

        with anyio.CancelScope() as scope:
            try:
                outcome = {"ended": "result", "result": await self.call(client, note)}
            except MCPError as error:
                outcome = {"ended": "error", "error": describe(error)}
        usable = len(await self.names(client)) > 0
        return {**outcome, "cancelled": scope.cancel_called, "progress": progress, "usable": usable}

    async def play_elicit(self, client):
        result = await self.call(client)
        return {"result": result, "asked": self.asked}

    async def play_list_changed(self, client):
        before = await self.names(client)
        if client.protocol_version == MODERN:
            async with client.listen(tools_list_changed=True) as subscription:
                await self.trigger(client)
                async for _event in subscription:
                    break
        else:
            await self.trigger(client)
            await self.changed.wait()
        return {"before": before, "tools": await self.names(client)}

    async def trigger(self, client):
        if self.options.tool:
            await self.call(client)

    async def play(self):
        scenario = getattr(self, "play_" + self.options.scenario.replace("-", "_"))
        with anyio.fail_after(self.options.timeout / 1000):
            async with self.client() as client:
                outcome = await scenario(client)
                return {"ok": True, "protocolVersion": client.protocol_version, **outcome}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scenario", choices=["list", "call", "progress", "long", "cancel", "elicit", "list-changed"])
    parser.add_argument("--stdio")
    parser.add_argument("--url")
    parser.add_argument("--token")
    parser.add_argument("--tool")
    parser.add_argument("--args", default="{}")
    parser.add_argument("--answer", default="{}")
    parser.add_argument("--timeout", type=int, default=15000)
    parser.add_argument("--limit", type=int)
    player = Player(parser.parse_args())
    try:
        outcome = anyio.run(player.play)
    except Exception as error:
        outcome = {"ok": False, "error": describe(error)}
    print(json.dumps(outcome))
    sys.exit(0 if outcome["ok"] else 1)


if __name__ == "__main__":
    main()
