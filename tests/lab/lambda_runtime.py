"""What of Lambda a runtime sees: the Runtime API, and a program that speaks it.

    with lambda_runtime.Api() as api:
        ... start a runtime with api.environment ...
        api.invoke({"n": 3})      -> what the function answered, when it asks for the next event
"""
import http.server
import json
import queue
import threading
import time

VERSION = "/2018-06-01/runtime"

# A runtime in Python: BOOTSTRAP FILE, whose `handler(event)` is the function.
BOOTSTRAP = f"""\
import json, os, runpy, sys, urllib.request
BASE = "http://" + os.environ["AWS_LAMBDA_RUNTIME_API"] + "{VERSION}/invocation/"
handler = runpy.run_path(sys.argv[1])["handler"]
while True:
    with urllib.request.urlopen(BASE + "next") as event:
        number, given = event.headers["Lambda-Runtime-Aws-Request-Id"], json.load(event)
    try:
        kind, answer = "response", handler(given)
    except Exception as error:
        kind, answer = "error", {{"errorMessage": str(error), "errorType": type(error).__name__}}
    urllib.request.urlopen(BASE + number + "/" + kind, json.dumps(answer).encode()).close()
"""


class Failed(Exception):
    """What a function's error said."""


class Api:
    """One environment: one invocation at a time. `waiting`: the runtime asks for an event and there is none, which is when
    Lambda freezes it."""

    def __init__(self):
        self.events, self.answers = queue.Queue(), queue.Queue()
        self.waiting, self.count = threading.Event(), 0
        self.server = _Listener(("127.0.0.1", 0), _Handler)
        self.server.api = self
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.events.put(None)
        self.server.shutdown()
        self.server.server_close()

    @property
    def environment(self):
        """What Lambda sets, by its documentation."""
        return {"AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self.server.server_address[1]}", "AWS_LAMBDA_FUNCTION_NAME": "checkout",
                "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256", "AWS_REGION": "eu-west-1",
                "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13", "LAMBDA_TASK_ROOT": "/var/task", "TZ": ":UTC",
                "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand"}

    def idle(self, seconds=30):
        if not self.waiting.wait(seconds):
            raise TimeoutError("the runtime does not ask for an event")

    def invoke(self, event, seconds=30):
        self.idle(seconds)
        self.waiting.clear()
        self.count += 1
        self.events.put((f"8476a536-e9f4-11e8-9739-{self.count:012d}", event))
        kind, answer = self.answers.get(timeout=seconds)
        self.idle(seconds)
        if kind != "response":
            raise Failed(answer["errorMessage"])
        return answer


class _Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A runtime that is killed is what is tested."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, status, body, headers=()):
        self.send_response(status)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        api = self.server.api
        if self.path != f"{VERSION}/invocation/next":
            self.say(404, b"")
            return
        api.waiting.set()
        given = api.events.get()
        if given:
            number, event = given
            self.say(200, json.dumps(event).encode(), [
                ("Lambda-Runtime-Aws-Request-Id", number), ("Lambda-Runtime-Deadline-Ms", str(int(time.time() * 1000) + 60000)),
                ("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-west-1:111122223333:function:checkout"),
                ("Lambda-Runtime-Trace-Id", "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=1")])

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.api.answers.put((self.path.rpartition("/")[2], body))
        self.say(202, b'{"status":"OK"}')
