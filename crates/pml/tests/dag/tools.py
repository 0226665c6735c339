"""A server for tasks, and its ledger: what it was asked for and what it did, in the order it happened.

    tools.py FILE

`echo` gives back what it is given, after `wait` ms. `add` writes down an id and is not idempotent. `flaky` does not
manage the first `times` calls for a `key`: it hangs, or its process dies. `fail` fails. `orchestrate` stands for a
program elsewhere that is handed all its arguments. `secret` is for nobody.
"""

import json
import os
import sys
import threading
import time

FILE = sys.argv[1]
ledger = os.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
speaking = threading.Lock()
counting = threading.Lock()


def write(event, **about):
    os.write(ledger, (json.dumps({"event": event, **about}) + "\n").encode())


def say(message):
    with speaking:
        sys.stdout.write(json.dumps(message, separators=(",", ":")) + "\n")
        sys.stdout.flush()


def tries(key):
    with open(FILE) as file:
        events = [json.loads(line) for line in file if line.endswith("\n")]
    return sum(1 for event in events if event["event"] == "try" and event["key"] == key)


def call(request, tool, given):
    write("got", tool=tool, given=given)
    time.sleep(given.get("wait", 0) / 1000)
    if tool == "flaky":
        with counting:
            before = tries(given["key"])
            write("try", key=given["key"])
        if before < given["times"]:
            if given["how"] == "die":
                os._exit(3)
            return
    if tool == "fail":
        result = {"content": [{"type": "text", "text": given["message"]}], "isError": True}
    else:
        result = {"content": [], "structuredContent": {"given": given} if tool == "orchestrate" else given}
    write("done", tool=tool, given=given)
    say({"jsonrpc": "2.0", "id": request, "result": result})


def tool(name, required=(), **properties):
    schema = {"type": "object", "properties": {"wait": {"type": "number"}, **properties}, "required": list(required)}
    return {"name": name, "inputSchema": schema}


TEXT, NUMBER = {"type": "string"}, {"type": "number"}
TOOLS = [
    tool("echo", ["value"], value={}),
    tool("add", ["id"], id={}),
    tool("flaky", ["key", "times", "how"], key=TEXT, times=NUMBER, how={"enum": ["hang", "die"]}),
    tool("fail", ["message"], message=TEXT),
    tool("orchestrate", flow=TEXT, input={}, mode=TEXT),
    tool("secret"),
]


def answer(message):
    method, request = message.get("method"), message.get("id")
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        about = {"name": "tools", "version": "1"}
        say({"jsonrpc": "2.0", "id": request, "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}})
    elif method == "tools/list":
        say({"jsonrpc": "2.0", "id": request, "result": {"tools": TOOLS}})
    elif method == "tools/call":
        arguments = (request, message["params"]["name"], message["params"].get("arguments", {}))
        threading.Thread(target=call, args=arguments, daemon=True).start()
    elif request is not None:
        say({"jsonrpc": "2.0", "id": request, "error": {"code": -32601, "message": f"no {method} here"}})


for line in sys.stdin:
    answer(json.loads(line))
