"""What Performance Studio takes, in the studio's own statuses: a request in, its answer out.

    status, answer, upload = studio_model.judge(request)      # upload: an Upload when the status is 200, else None

    status, answer, batch = studio_model.judge_logs(request)  # likewise of its log service: a Batch

Written from the studio's published behaviour (version 2 of its profiles): which headers, fields and keys it refuses a request
without, and with what. Where the studio takes a thing and loses the profile later, in its indexer, or where
it takes what a client must not do, this model answers 400 and says "strict: ..." in the message.
"""
import datetime
import gzip
import json
import re
import urllib.parse

LOGS = "/api/v1/logs"
PROFILES, HEALTH = "/api/v2/profiles", ("/api/v1/health_check", "/api/v2/health_check")
PROXY_MOST, APPLICATION_MOST = 1024 * 1024, 4 * 1024 * 1024

NUMBERS = {"spawn_uptime_ms", "processors", "memory_capacity_mb", "pid"}
TEXTS = {"current_time", "spawn_time", "private_ip", "hostname", "cloud_provider", "system_name", "os_name", "os_release",
         "kernel_release", "kernel_version", "hardware_type", "mac_address", "agent_version", "libc_type", "libc_version",
         "python_version", "run_mode", "deployment_type"}
OBJECTS = {"run_arguments"}
REQUIRED = NUMBERS | TEXTS | OBJECTS
FIELDS = ("start_time", "profile", "gpid")
CLOUDS = {"aws", "gcp", "azure", "unknown"}
# What the studio's tables take; the rest is an error of theirs, told by the same 400.
RUN_MODES = {"k8s", "container", "standalone_executable", "local_python"}
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
METADATA = "Failed to parse v2 metadata"


class Request:
    """`headers` is a mapping; names are compared without case. `names` has every header that came, as often as it did."""

    def __init__(self, method, target, headers, body):
        self.method, self.target, self.body = method, target, body
        self.headers = {name.lower(): value for name, value in dict(headers).items()}
        self.names = [name.lower() for name, _ in headers.items()]
        self.path, _, query = target.partition("?")
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))


class Upload:
    def __init__(self, request, fields, header, lines):
        self.service, self.token = request.headers["gprofiler-service-name"], request.headers["gprofiler-api-key"]
        self.start_time, self.gpid, self.profile = fields["start_time"], fields["gpid"], fields["profile"]
        self.fields, self.header, self.lines, self.bytes = fields, header, lines, len(request.body)

    @property
    def total(self):
        return sum(count for _, count in self.lines)


class Refused(Exception):
    def __init__(self, status, answer):
        super().__init__(f"{status}: {answer}")
        self.status, self.answer = status, answer


def refuse(message):
    raise Refused(400, {"message": message})


def strict(message):
    refuse(f"strict: {message}")


def judge(request, tokens=("SECRET-1",), gpid="4711"):
    try:
        return _judge(request, tokens, gpid)
    except Refused as refused:
        return refused.status, refused.answer, None


def _judge(request, tokens, gpid):
    if request.path in HEALTH and request.method == "GET":
        key = request.headers.get("gprofiler-api-key")
        if key is not None and key not in tokens:
            refuse("Invalid API key")
        return 200, {"message": "ok"}, None
    if request.path != PROFILES:
        raise Refused(404, {"detail": "Not Found"})
    if request.method != "POST":
        raise Refused(405, {"detail": "Method Not Allowed"})
    fields = _fields(request)
    if request.headers["gprofiler-api-key"] not in tokens:
        refuse("Invalid GPROFILER-API-KEY header")
    if not re.sub(r"[^A-Za-z0-9_.-]", "", request.headers["gprofiler-service-name"]).lstrip("_"):
        refuse("Invalid GPROFILER-SERVICE-NAME header")
    header, lines = _profile(fields["profile"])
    _metadata(header)
    _gpid(fields["gpid"])
    _indexer(header)
    _lines(header, lines)
    _query(request, fields)
    _secret(request, fields)
    return 200, {"message": "ok", "gpid": gpid}, Upload(request, fields, header, lines)


# ---- The request

def _fields(request):
    if "content-length" not in request.headers:
        raise Refused(411, "Length Required")
    length = int(request.headers["content-length"])
    if length > PROXY_MOST:
        raise Refused(413, "<html><head><title>413 Request Entity Too Large</title></head></html>")
    if length != len(request.body):
        strict(f"a length of {length} for {len(request.body)} bytes")
    body = request.body
    if request.headers.get("content-encoding") == "gzip":
        try:
            body = gzip.decompress(body)
        except (OSError, EOFError) as error:
            strict(f"gzip: {error}")
    elif "content-encoding" in request.headers:
        strict("an encoding that the studio does not know")
    missing = [("header", name) for name in ("gprofiler-api-key", "gprofiler-service-name") if name not in request.headers]
    try:
        fields = json.loads(body)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise _unprocessable([("body",)])
    missing += [("body", name) for name in FIELDS if fields.get(name) is None]
    wrong = [("body", name) for name, kinds in (("profile", str), ("gpid", (str, int)), ("start_time", str))
             if fields.get(name) is not None and (not isinstance(fields[name], kinds) or isinstance(fields[name], bool))]
    if missing or wrong:
        raise _unprocessable(missing + wrong)
    try:
        datetime.datetime.fromisoformat(fields["start_time"])
    except ValueError:
        raise _unprocessable([("body", "start_time")]) from None
    if not MOMENT.fullmatch(fields["start_time"]):
        strict(f"start_time {fields['start_time']!r}: the indexer wants seconds, without a zone")
    return fields


def _unprocessable(places):
    return Refused(422, {"detail": [{"loc": list(place), "msg": "field required", "type": "value_error.missing"}
                                    for place in places]})


def _query(request, fields):
    for name in ("service", "hostname", "timestamp", "version"):
        if name not in request.query:
            strict(f"no {name} in the address")
    if request.query["timestamp"] != fields["start_time"]:
        strict("timestamp is not start_time")


def _secret(request, fields):
    token = request.headers["gprofiler-api-key"]
    if token in request.target or token in json.dumps(fields):
        strict("the token stands outside its header")


# ---- The profile

def _profile(text):
    first, *lines = text.split("\n")
    if not first.startswith("#"):
        refuse(METADATA)
    try:
        header = json.loads(first[1:])
    except ValueError:
        refuse(METADATA)
    if not isinstance(header, dict):
        refuse(METADATA)
    return header, [_count(line, number) for number, line in enumerate(lines, 2)]


def _count(line, number):
    stack, blank, count = line.rpartition(" ")
    if not blank or not count.isdigit() or int(count) == 0:
        strict(f"line {number}: no count: {line[:80]!r}")
    return stack, int(count)


def _is_kind(key, value):
    if key in NUMBERS:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, dict if key in OBJECTS else str)


def _metadata(header):
    metadata = header.get("metadata")
    if not isinstance(metadata, dict):
        refuse(METADATA)
    if not isinstance(header.get("containers", []), list):
        refuse(METADATA)
    for key in sorted(REQUIRED):
        if not _is_kind(key, metadata.get(key)):
            refuse(METADATA)
    if metadata["cloud_provider"].lower() not in CLOUDS:
        refuse(METADATA)
    if "cloud_info" in metadata and not isinstance(metadata["cloud_info"], dict):
        refuse(METADATA)
    if metadata["run_mode"] not in RUN_MODES or metadata["processors"] < 1 or metadata["memory_capacity_mb"] < 1:
        refuse(METADATA)
    for key in ("current_time", "spawn_time"):
        try:
            datetime.datetime.fromisoformat(metadata[key])
        except ValueError:
            refuse(METADATA)
    version = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)(-.*)?", metadata["agent_version"])
    if not version:
        refuse(METADATA)
    if tuple(map(int, version.groups()[:3])) < (1, 2, 3):
        strict("agent_version: older agents get no gpid")
    if not re.fullmatch(r"([0-9A-F]{2}:){5}[0-9A-F]{2}", metadata["mac_address"]):
        strict(f"mac_address {metadata['mac_address']!r}: instances are told by it")


def _gpid(gpid):
    if gpid != "" and not str(gpid).isdigit():
        refuse(METADATA)


def _indexer(header):
    """The indexer's types: what is of another is lost after the 200."""
    metadata, arguments = header["metadata"], header["metadata"]["run_arguments"]
    for where, key, kinds in ((arguments, "service_name", str), (arguments, "profile_api_version", str),
                              (arguments, "perf_events", str), (arguments, "perf_mode", str), (header, "htmlblob", str),
                              (header, "flamegraph_html", str), (metadata, "continuous", bool),
                              (header, "application_metadata_enabled", bool)):
        if where.get(key) is not None and not isinstance(where[key], kinds):
            strict(f"{key}: {where[key]!r}")
    if "application_metadata_enabled" not in header:
        strict("application_metadata_enabled says whether lines begin with an index")
    if not isinstance(header.get("containers"), list) or not all(isinstance(name, str) for name in header["containers"]):
        strict("containers")
    metrics = header.get("metrics")
    if not isinstance(metrics, dict) or set(metrics) != {"cpu_avg", "mem_avg"}:
        strict("metrics")
    values = [value for value in metrics.values() if value is not None]
    if len(values) == 1 or not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        strict(f"metrics {metrics}: both or none, numbers")
    if header.get("flamegraph_html"):
        strict("flamegraph_html doubles the upload")


def _lines(header, lines):
    applications = header.get("application_metadata") or [None]
    if applications[0] is not None:
        strict("application_metadata does not begin with null")
    indexed = header["application_metadata_enabled"]
    contained = header["metadata"]["run_arguments"].get("profile_api_version") != "v1"
    before = indexed + contained
    for number, (stack, _) in enumerate(lines, 2):
        fields = stack.split(";")
        if len(fields) <= before:
            strict(f"line {number}: {len(fields)} fields: the indexer ends there")
        if indexed and not (fields[0].isdigit() and int(fields[0]) < len(applications)):
            strict(f"line {number}: index {fields[0]!r}")
        if any(not frame.strip() for frame in fields[before:]):
            strict(f"line {number}: an empty frame")


# ---- Logs

class Batch:
    def __init__(self, request, fields):
        self.fields, self.headers = fields, request.headers
        self.ident, self.lost, self.metadata = fields["batch_id"], fields["lost_logs_count"], fields["metadata"]
        self.messages = [log["text"]["message"] for log in fields["logs"]]
        self.numbers = [log["text"]["serial_no"] for log in fields["logs"]]


def judge_logs(request, tokens=("SECRET-1",)):
    """The service itself asks for a length, JSON, "metadata", and a "timestamp" in each of "logs"; whatever else an agent is
    to send is asked for strictly."""
    try:
        return _judge_logs(request, tokens)
    except Refused as refused:
        return refused.status, refused.answer, None


def _judge_logs(request, tokens):
    if request.method != "POST":
        raise Refused(405, {"detail": "Method Not Allowed"})
    if "content-length" not in request.headers:
        raise Refused(411, {"detail": "Length Required"})
    if request.headers.get("content-encoding") != "gzip" or request.headers.get("content-type") != "application/json":
        strict("logs are gzip'd JSON")
    if request.headers.get("x-token") not in tokens or request.headers.get("x-application-name") != "gprofiler":
        strict("X-Token, X-Application-Name")
    fields = json.loads(gzip.decompress(request.body))
    if not isinstance(fields, dict) or set(fields) != {"batch_id", "metadata", "lost_logs_count", "logs"}:
        strict(f"fields {sorted(fields)}")
    if not re.fullmatch("[0-9a-f]{32}", fields["batch_id"]) or type(fields["lost_logs_count"]) is not int:
        strict("batch_id, lost_logs_count")
    metadata = fields["metadata"]
    if not {"run_id", "gprofiler_version", "service_name"} <= set(metadata) <= {"run_id", "gprofiler_version", "service_name", "hostname"}:
        strict(f"metadata {sorted(metadata)}")
    if not re.fullmatch("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", metadata["run_id"]):
        strict(f"run_id {metadata['run_id']!r} is no UUID of version 4")
    if not fields["logs"]:
        strict("an empty batch")
    for log in fields["logs"]:
        _log(log)
    if any(token in json.dumps(fields) for token in tokens):
        strict("the token stands outside its header")
    return 201, {"status": "ok"}, Batch(request, fields)


def _log(log):
    if set(log) != {"severity", "timestamp", "text"} or log["severity"] not in (1, 2, 3, 4, 5, 6):
        strict(f"a message {log}")
    if type(log["timestamp"]) is not float or not 1.7e12 < log["timestamp"] < 4e12:
        strict(f"timestamp {log['timestamp']!r}: milliseconds")
    text = log["text"]
    kinds = {"logger_name": str, "serial_no": int, "message": str, "timestamp": str, "extra": dict}
    if any(type(text.get(name)) is not kind for name, kind in kinds.items()):
        strict(f"text {text}")
