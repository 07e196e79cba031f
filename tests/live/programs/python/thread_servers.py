"""http|flask|django PORT: a server that starts a thread for each request, which computes 4 ms in three functions. When it is
told to end, it says what each of them used, and the whole process, of that what the threads of requests did."""
import os
import signal
import sys
import threading
import time

spent = {"half": 0.0, "three_tenths": 0.0, "fifth": 0.0}
lock = threading.Lock()


def work(name, seconds):
    begin = time.thread_time()
    while time.thread_time() < begin + seconds:
        sum(range(300))
    with lock:
        spent[name] += time.thread_time() - begin


def half():
    work("half", 0.002)


def three_tenths():
    work("three_tenths", 0.0012)


def fifth():
    work("fifth", 0.0008)


def answer():
    half()
    three_tenths()
    fifth()
    return "done"


def serve_http(port):
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = answer().encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    ThreadingHTTPServer.request_queue_size = 64
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


def serve_flask(port):
    import logging

    import flask
    logging.getLogger("werkzeug").disabled = True
    app = flask.Flask("servers")
    app.add_url_rule("/", view_func=answer)
    app.run("127.0.0.1", port, threaded=True)


def serve_django(port):
    import django
    from django.conf import settings
    from django.core.management import call_command
    from django.http import HttpResponse
    from django.urls import path
    global urlpatterns
    urlpatterns = [path("", lambda request: HttpResponse(answer()))]
    settings.configure(SECRET_KEY="none", ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, DEBUG=True, LOGGING_CONFIG=None)
    django.setup()
    call_command("runserver", f"127.0.0.1:{port}", "--noreload")


def leave(*_):
    print(" ".join(f"{name} {seconds:.4f}" for name, seconds in spent.items()), f"seconds {time.process_time():.3f}", flush=True)
    os._exit(0)


signal.signal(signal.SIGTERM, leave)
{"http": serve_http, "flask": serve_flask, "django": serve_django}[sys.argv[1]](int(sys.argv[2]))
