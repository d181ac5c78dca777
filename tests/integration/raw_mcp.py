"""An MCP server without any SDK, in the words of the older protocol: it does what a script in JSON says.

raw_mcp.py SCRIPT: a file with `protocol`, `tools` (pages of tools as they are sent), `after` (the tools once a call has
changed them), `calls` (steps by tool), `fails` (how many starts end at once), `log` (a file: a line for each message
that arrived, and for each start), `refused` (which requests for tools are answered with an error, from 1), `mute` (the
page from which on there is no answer).
"""

import json
import os
import sys

with open(sys.argv[1]) as given:
    script = json.load(given)
pages = script.get("tools", [[]])


def log(entry):
    with open(script["log"], "a") as file:
        file.write(json.dumps(entry) + "\n")


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


lists = 0


def list_tools(id, params):
    global lists
    lists += 1
    if lists in script.get("refused", ()):
        send({"id": id, "error": {"code": -32603, "message": "not now"}})
    elif int(params.get("cursor", 0)) < script.get("mute", 1_000_000):
        send({"id": id, "result": listed(params)})


def listed(params):
    at = int(params.get("cursor", 0))
    more = {"nextCursor": str(at + 1)} if at + 1 < len(pages) or script.get("endless") else {}
    return {"tools": pages[at] if at < len(pages) else [], **more}


def call(id, params):
    global pages
    steps = script.get("calls", {}).get(params["name"], [{"text": params["name"]}])
    for step in steps:
        if "progress" in step:
            token = params.get("_meta", {}).get("progressToken")
            done, total, message = step["progress"]
            body = {"progressToken": token, "progress": done, "total": total, "message": message}
            send({"method": "notifications/progress", "params": body})
        elif "text" in step:
            send({"id": id, "result": {"content": [{"type": "text", "text": step["text"]}]}})
        elif "echo" in step:
            send({"id": id, "result": {"content": [{"type": "text", "text": json.dumps(params["arguments"])}]}})
        elif "result" in step:
            send({"id": id, "result": step["result"]})
        elif "error" in step:
            send({"id": id, "error": step["error"]})
        elif "answer" in step:
            sys.stdout.write(step["answer"] % json.dumps(id) + "\n")
            sys.stdout.flush()
        elif "line" in step:
            sys.stdout.write(step["line"] + "\n")
            sys.stdout.flush()
        elif "ask" in step:
            form = {"type": "object", "properties": {"who": {"type": "string"}}}
            body = {"message": step["ask"], "requestedSchema": form}
            send({"id": "question", "method": "elicitation/create", "params": body})
            answer = json.loads(sys.stdin.readline())
            send({"id": id, "result": {"content": [{"type": "text", "text": json.dumps(answer.get("result"))}]}})
        elif "forever" in step:
            while True:
                sys.stdout.write(step["forever"])
        elif "die" in step:
            os._exit(step["die"])
        elif "change" in step:
            pages = script["after"]
            if step["change"] == "told":
                send({"method": "notifications/tools/list_changed"})


def main():
    starts = 0
    if os.path.exists(script["log"]):
        with open(script["log"]) as file:
            starts = sum("start" in json.loads(line) for line in file)
    log({"start": os.getpid(), "environment": sorted(os.environ), "cwd": os.getcwd()})
    if starts < script.get("fails", 0):
        sys.stderr.write("\x1b[31mno luck\n")
        sys.exit(3)
    for line in sys.stdin:
        message = json.loads(line)
        log(message)
        method, params = message.get("method"), message.get("params", {})
        if method == "initialize":
            about = {"protocolVersion": script.get("protocol", "2025-06-18"), "capabilities": {"tools": {}}}
            send({"id": message["id"], "result": {**about, "serverInfo": {"name": "raw", "version": "1"}}})
        elif method == "tools/list":
            list_tools(message["id"], params)
        elif method == "tools/call":
            call(message["id"], params)
        elif "id" in message and method:
            send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})


main()
