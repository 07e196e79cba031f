"""What Pyroscope takes at push.v1 and at /ingest, by its published limits: a request in, its answer out.

    status, answer, kept = pyroscope_model.judge(request)      # a studio_model.Request; kept: a Push when it is taken

A strict reader of the wire format: a field that push.v1 does not have is refused, where the server would pass over it. With
`old=True` the new address is not there.
"""
import functools
import gzip
import re
import urllib.parse

from . import pprof

PUSH, INGEST = "/push.v1.PusherService/Push", "/ingest"
PLAIN_MOST, SAMPLES_MOST, BURST, LABELS_MOST = 4 << 20, 16000, 2 << 20, 30
OF_GO = {"bytes", "goid", "state", "lockedm", "leaked"}  # numbers, which are no series, and a few words
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class Push:
    def __init__(self, labels, identity, profile):
        self.labels, self.identity, self.profile = labels, identity, profile


class Refused(Exception):
    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.answer = status, {"code": code, "message": message}


def invalid(message):
    raise Refused(400, "invalid_argument", message)


def judge(request, old=False):
    try:
        if request.path == INGEST and request.method == "POST":
            return 200, b"", _ingest(request)
        if request.path == PUSH and request.method == "POST" and not old:
            return 200, b"", _push(request)
        raise Refused(404, "not_found", "404 page not found")
    except Refused as refused:
        return refused.status, refused.answer, None


old = functools.partial(judge, old=True)


def _only(data, known):
    fields = list(pprof._fields(data))
    if not {number for number, _ in fields} <= set(known):
        invalid(f"fields {sorted({number for number, _ in fields})}, known are {known}")
    return fields


def _push(request):
    if request.headers.get("content-type") != "application/proto":
        raise Refused(415, "unknown", "unsupported media type")
    series = _only(request.body, [1])
    if len(series) != 1:
        invalid(f"{len(series)} series")
    labels, samples = {}, []
    for number, data in _only(series[0][1], [1, 2]):
        fields = dict(_only(data, [1, 2]))
        if number == 1:
            name, value = fields[1].decode(), fields[2].decode()
            if name in labels:
                invalid(f"duplicate label name {name}")
            labels[name] = value
        else:
            samples.append(fields)
    if len(samples) != 1 or not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", samples[0][2].decode()):
        invalid("samples")
    _labels(labels)
    return Push(labels, samples[0][2].decode(), _profile(samples[0][1]))


def _labels(labels):
    if not labels.get("service_name") or not NAME.fullmatch(labels.get("__name__", "")):
        invalid("__name__ or service_name")
    if len(labels) > LABELS_MOST:
        invalid(f"{len(labels)} labels")
    for name, value in labels.items():
        if not NAME.fullmatch(name) or len(name) > 1024 or len(value) > 2048:
            invalid(f"label {name!r}")


def _profile(data):
    plain = gzip.decompress(data)
    if len(plain) > PLAIN_MOST:
        invalid(f"the profile exceeds the size limit ({len(plain)})")
    if len(plain) > BURST:
        raise Refused(429, "resource_exhausted", "rate limit")
    profile = pprof.Profile(data)
    if len(profile.samples) > SAMPLES_MOST:
        invalid("the profile exceeds the samples count limit")
    for name, _ in profile.sample_types:
        if "-" in name:
            invalid("sample type contains -")
    for sample in profile.samples:
        if not all(NAME.fullmatch(label) for label in sample.labels):
            invalid(f"labels {sorted(sample.labels)}")
        if set(sample.labels) - {"comm", "container", "appid"} - OF_GO:
            invalid(f"strict: labels {sorted(sample.labels)} would be a series each")
    return profile


def _ingest(request):
    if request.headers.get("content-encoding"):
        raise Refused(422, "unknown", "it is not decoded here")
    query = dict(urllib.parse.parse_qsl(request.target.partition("?")[2], keep_blank_values=True))
    found = re.fullmatch(r"([A-Za-z0-9_./-]+)(?:\{([^{}]*)\})?", query.get("name", ""))
    if not found or query.get("format") != "pprof":
        invalid(f"name {query.get('name')!r}, format {query.get('format')!r}")
    labels = dict(pair.split("=", 1) for pair in (found[2] or "").split(",") if pair)
    if not re.fullmatch(r"\d{10}", query.get("from", "")) or not re.fullmatch(r"\d{10}", query.get("until", "")):
        invalid("from, until")
    return Push({"service_name": found[1], "__name__": "process_cpu", **labels}, None, _profile(request.body))
