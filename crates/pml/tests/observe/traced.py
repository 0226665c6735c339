"""A server that writes down the trace context of every call.

    traced.py FILE

`note` gives back what it is given, `fail` gives a result that is an error, `refuse` a JSON-RPC error.
"""

import json
import sys

FILE = sys.argv[1]


def say(request, **answer):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request, **answer}, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def call(request, params):
    given, meta = params.get("arguments", {}), params.get("_meta", {})
    context = {name: meta[name] for name in ("traceparent", "tracestate") if name in meta}
    with open(FILE, "a") as file:
        file.write(json.dumps({"tool": params["name"], "given": given, "context": context}) + "\n")
    if params["name"] == "refuse":
        say(request, error={"code": -32099, "message": f"no {given}"})
    else:
        text = [{"type": "text", "text": json.dumps(given)}]
        say(request, result={"content": text, "structuredContent": given, "isError": params["name"] == "fail"})


def answer(message):
    method, request = message.get("method"), message.get("id")
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        about = {"name": "traced", "version": "1"}
        say(request, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about})
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"value": {}}}
        say(request, result={"tools": [{"name": name, "inputSchema": schema} for name in ("note", "fail", "refuse")]})
    elif method == "tools/call":
        call(request, message["params"])
    elif request is not None:
        say(request, error={"code": -32601, "message": f"no {method} here"})


for line in sys.stdin:
    answer(json.loads(line))
