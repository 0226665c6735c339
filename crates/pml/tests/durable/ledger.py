"""A server whose file is the truth: what it was asked for, did and answered, in the order it happened.

    ledger.py FILE

`add` is not idempotent: a line is on the disk before the answer is given. `put` is, `get` changes nothing. A call takes
`before` ms until it acts and `after` ms until it is answered. It finishes an `add` it has begun even where it is asked
to end, as real servers do, and forgets everything else.

Beside FILE there may be a file named `aim` that holds one word: `got`, `done` or `answered`. The first call to come that
far takes it away and kills the process that started this one, at once. A file `slow-start` holds how many milliseconds
it takes to start.
"""

import json
import os
import signal
import sys
import threading
import time

FILE = sys.argv[1]
AIM, SLOW_START = (os.path.join(os.path.dirname(FILE), name) for name in ("aim", "slow-start"))
ledger = os.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
speaking = threading.Lock()
adding = set()
ending = threading.Event()


def write(event, **about):
    line = json.dumps({"event": event, "pid": os.getpid(), **about}) + "\n"
    os.write(ledger, line.encode())


def gateway():
    """The process that started the guard that started this."""
    with open(f"/proc/{os.getppid()}/stat") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[1])


def aim(stage):
    try:
        with open(AIM) as file:
            if file.read() != stage:
                return
        os.unlink(AIM)
    except FileNotFoundError:
        return
    os.kill(gateway(), signal.SIGKILL)


def say(message):
    with speaking:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def values():
    with open(FILE) as file:
        events = [json.loads(line) for line in file if line.endswith("\n")]
    return {event["key"]: event["value"] for event in events if event["event"] == "done" and event["tool"] == "put"}


def call(request, tool, arguments):
    about = {"tool": tool, **{name: arguments[name] for name in ("id", "key", "value") if name in arguments}}
    write("got", **about)
    aim("got")
    time.sleep(arguments.get("before", 0) / 1000)
    if tool == "get":
        result = {"value": values().get(arguments["key"])}
    else:
        write("done", **about)
        os.fsync(ledger)
        result = {"id": arguments["id"]} if tool == "add" else {}
        aim("done")
    time.sleep(arguments.get("after", 0) / 1000)
    say({"jsonrpc": "2.0", "id": request, "result": {"content": [], "structuredContent": result}})
    aim("answered")
    write("answered", **about)
    adding.discard(request)
    if ending.is_set() and not adding:
        os._exit(0)


def end(*_):
    ending.set()
    if not adding:
        os._exit(0)


def tool(name, required, properties, output):
    delays = {"before": {"type": "number"}, "after": {"type": "number"}}
    input_schema = {"type": "object", "properties": {**properties, **delays}, "required": required}
    return {"name": name, "inputSchema": input_schema, "outputSchema": {"type": "object", **output}}


TEXT, NUMBER = {"type": "string"}, {"type": "number"}
TOOLS = [
    tool("add", ["id"], {"id": TEXT}, {"properties": {"id": TEXT}, "required": ["id"]}),
    tool("put", ["key", "value"], {"key": TEXT, "value": NUMBER}, {}),
    tool("get", ["key"], {"key": TEXT}, {"properties": {"value": {"type": ["number", "null"]}}, "required": ["value"]}),
]


def answer(message):
    method, request = message.get("method"), message.get("id")
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        about = {"name": "ledger", "version": "1"}
        say({"jsonrpc": "2.0", "id": request, "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}})
    elif method == "tools/list":
        say({"jsonrpc": "2.0", "id": request, "result": {"tools": TOOLS}})
    elif method == "tools/call":
        name, arguments = message["params"]["name"], message["params"].get("arguments", {})
        if name == "add":
            adding.add(request)
        threading.Thread(target=call, args=(request, name, arguments), daemon=True).start()
    elif method == "notifications/cancelled":
        write("cancelled", request=message["params"]["requestId"])
    elif request is not None:
        say({"jsonrpc": "2.0", "id": request, "error": {"code": -32601, "message": f"no {method} here"}})


signal.signal(signal.SIGTERM, end)
if os.path.exists(SLOW_START):
    with open(SLOW_START) as file:
        time.sleep(int(file.read()) / 1000)
write("start")
for line in sys.stdin:
    answer(json.loads(line))
end()
signal.pause()
