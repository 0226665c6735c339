"""A server on a world that several servers share, and the ledger of every call of any of them.

    world.py DIR NAME [WORLD]

DIR/ledger has a line where each call begins and one where it ends, in the order in which it happened. DIR/world, or
DIR/WORLD, is the world: every `write`, at any server with this world, adds a byte to it. Reads give back their arguments and how many writes there were.

Every call waits `wait` ms and until the file DIR/`until` exists. `look` reads, and nothing says so. `web` reaches a
network, as it says. `find_user` and `orders` say what they return and take, by different names. `flaky` answers as `read` does after it was called `times` times with its `key`, and until then as
`how` says: it hangs, fails, or lets its process die. `single` refuses a call while it has another that was not cancelled. The description of `read` is what DIR/definition says, which is looked at all the time.
"""

import json
import os
import sys
import threading
import time

DIR, NAME = sys.argv[1], sys.argv[2]
ledger = os.open(os.path.join(DIR, "ledger"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
WORLD = sys.argv[3] if len(sys.argv) > 3 else "world"
world = os.open(os.path.join(DIR, WORLD), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
speaking = threading.Lock()


def note(event, **about):
    os.write(ledger, (json.dumps({"event": event, "server": NAME, **about}) + "\n").encode())


def say(message):
    with speaking:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n")
        sys.stdout.flush()


def definition():
    try:
        with open(os.path.join(DIR, "definition")) as file:
            return file.read()
    except FileNotFoundError:
        return "reads the world"


def earlier(key):
    """How many calls of `flaky` with this key began at any server, this one included."""
    with open(os.path.join(DIR, "ledger")) as file:
        events = [json.loads(line) for line in file if line.endswith("\n")]
    return sum(1 for event in events if event["event"] == "begin" and event["tool"] == "flaky" and event["given"]["key"] == key)


# The requests of `single` that are under way and were not cancelled.
single = set()
# The calls by their requests.
under_way = {}
# One item for each call with `untold`, which returns something else each time.
untold = []


def call(request, tool, given):
    note("begin", tool=tool, given=given)
    under_way[request] = {"tool": tool, "given": given}
    refused = tool == "single" and bool(single)
    if tool == "single" and not refused:
        single.add(request)
    time.sleep(given.get("wait", 0) / 1000)
    while "until" in given and not os.path.exists(os.path.join(DIR, given["until"])):
        time.sleep(0.005)
    failed = tool == "fail" or refused
    single.discard(request)
    if tool == "flaky" and earlier(given["key"]) <= given["times"]:
        if given["how"] == "die":
            os._exit(3)
        if given["how"] == "hang":
            return
        failed = True
    if tool == "write":
        os.write(world, b".")
    value = {"given": given, "writes": os.fstat(world).st_size}
    if tool == "find_user":
        value = {"user": {"id": "u-" + given["key"]}}
    if tool == "orders":
        value = {"count": len(given["user_id"])}
    if "untold" in given:
        untold.append(None)
        value["untold"] = len(untold)
    result = {"content": [], "structuredContent": value}
    if failed:
        result = {"content": [{"type": "text", "text": "it failed"}], "isError": True}
    note("end", tool=tool, given=given)
    say({"id": request, "result": result})


READS = {"readOnlyHint": True, "openWorldHint": False}


def schema(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


TEXT = {"type": "string"}
SCHEMAS = {
    "find_user": {"inputSchema": schema(key=TEXT), "outputSchema": schema(user=schema(id=TEXT))},
    "orders": {"inputSchema": schema(user_id=TEXT), "outputSchema": schema(count={"type": "integer"})},
}


def tools():
    def tool(name, annotations=None, description=""):
        about = {"name": name, "description": description, "inputSchema": {"type": "object"}, **SCHEMAS.get(name, {})}
        return {**about, "annotations": annotations} if annotations else about

    return [
        tool("read", READS, definition()),
        tool("look"),
        tool("web", {"readOnlyHint": True, "openWorldHint": True}),
        tool("fail", READS),
        tool("flaky", READS),
        tool("single", READS),
        tool("find_user", READS, "finds a user by name"),
        tool("orders", READS, "counts the orders of a user"),
        tool("write", {"readOnlyHint": False}),
        tool("delete_file"),
        tool("read_file"),
    ]


def answer(message):
    method, request = message.get("method"), message.get("id")
    if method == "initialize":
        about = {"serverInfo": {"name": NAME, "version": "1"}, "capabilities": {"tools": {"listChanged": True}}}
        say({"id": request, "result": {"protocolVersion": message["params"]["protocolVersion"], **about}})
    elif method == "tools/list":
        say({"id": request, "result": {"tools": tools()}})
    elif method == "notifications/cancelled":
        cancelled = message["params"]["requestId"]
        single.discard(cancelled)
        if cancelled in under_way:
            note("cancelled", **under_way[cancelled])
    elif method == "tools/call":
        arguments = (request, message["params"]["name"], message["params"].get("arguments", {}))
        threading.Thread(target=call, args=arguments, daemon=True).start()
    elif request is not None:
        say({"id": request, "error": {"code": -32601, "message": f"no {method} here"}})


def watch():
    known = definition()
    while True:
        time.sleep(0.05)
        if definition() != known:
            known = definition()
            say({"method": "notifications/tools/list_changed"})


threading.Thread(target=watch, daemon=True).start()
for line in sys.stdin:
    answer(json.loads(line))
