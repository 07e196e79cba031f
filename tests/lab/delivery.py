"""Requests as the back ends make them (lab/backend_request.c), and sending one without pillion's own client."""
import http.client
import json
import subprocess
import urllib.parse
from pathlib import Path

from . import studio_model


class Refused(Exception):
    """The back end makes no request of this; the text says why."""


def make(program, folder, backend, form, profile, /, **keys):
    """The request for a profile, as a studio_model.Request; keys as backend_request.c lists them, "." written "_of_"."""
    body = Path(folder) / "body"
    words = [f"{key.replace('_of_', '.')}={value}" for key, value in keys.items()]
    done = subprocess.run([program, backend, form, profile, body, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    if done.returncode != 0:
        raise Refused(done.stderr.decode())
    head, data = json.loads(done.stdout), body.read_bytes()
    headers = {name: value for name, value, _ in head["headers"]}
    request = studio_model.Request(head["method"], head["target"], {**headers, "Content-Length": str(len(data))}, data)
    request.secrets = {name for name, _, secret in head["headers"] if secret}
    return request


def send(url, request, timeout=10):
    """(status, headers, body) of a plain HTTP server's answer."""
    address = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=timeout)
    try:
        connection.request(request.method, request.target, request.body, request.headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()
