"""What Datadog takes: its agents at /profiling/v1/input, its intake at /api/v2/profile. A request in, its answer out.

    status, answer, kept = datadog_model.agent(request)        # a studio_model.Request; kept: an Upload when it is taken
    status, answer, kept = datadog_model.intake(request)       # the same without an agent: with the key

A strict reader, of every byte: where the service would pass over a thing, or lose the profile later, this one answers 400 and
says what it was. The key is SECRET-1.
"""
import datetime
import json
import re

from . import pprof

AGENT, INTAKE, KEY = "/profiling/v1/input", "/api/v2/profile", "SECRET-1"
MOST = 10 << 20
HEADERS = {"host", "user-agent", "accept", "content-length", "connection", "content-type", "dd-evp-origin",
           "dd-evp-origin-version", "datadog-container-id", "datadog-entity-id", "datadog-external-env"}
BOUNDARY = re.compile(r"multipart/form-data; boundary=([0-9A-Za-z'()+_,./:=?-]{1,70})")
CONTAINER = re.compile(r"[0-9a-f]{64}|[0-9a-f]{32}-\d+|[0-9a-f]{8}([-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}")
DISPOSITION = re.compile(r'form-data; name="([^"\\\r\n]+)"; filename="([^"\\\r\n]+)"')
MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{9})Z")
TAG = re.compile(r"(?:_dd\.)?[A-Za-z][A-Za-z0-9_./\\-]*:(?:[A-Za-z0-9_./\\:-]|[^\x00-\x7f])*(?<!:)")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
EVENT = {"version", "family", "attachments", "tags_profiler", "start", "end", "endpoint_counts", "internal", "info"}
MAY_BE = {"process_tags"}
PROCESS_TAG = re.compile(r"entrypoint\.(basedir|name|type|workdir):(?!_)(?:[a-z0-9_./-]|[^\x00-\x7f])+(?<!_)")
ONCE = {"language", "service", "host", "process_id", "runtime-id", "profiler_version", "runtime_arch", "runtime_os",
        "profile_seq"}
OF_RUNTIMES = {"delta-heap.pprof", "delta-mutex.pprof", "delta-block.pprof", "goroutines.pprof", "goroutineleak.pprof",
               "goroutineswait.pprof", "metrics.json", "go.trace"}
FAMILIES = {"native", "python", "java", "ruby", "php", "perl", "go", "node"}
AT_MOST_ONCE = ONCE | {"runtime", "runtime_version", "git.commit.sha", "git.repository_url", "env", "version", "region", "task_arn", "container_id", "pod_name"}


class Refused(Exception):
    def __init__(self, status, answer):
        super().__init__(answer)
        self.status, self.answer = status, answer


class Upload:
    """`tags` maps each key to its values, `start` and `end` are nanoseconds, `profile` is a pprof.Profile."""

    def __init__(self, request, event, tags, files):
        self.request, self.event, self.tags, self.files = request, event, tags, files
        self.start, self.end = nanoseconds(event["start"]), nanoseconds(event["end"])
        self.main = main_of(event["family"])
        self.profile = pprof.Profile(files[self.main]) if self.main in files else None
        self.sequence = int(tags["profile_seq"][0])

    def tag(self, key):
        (value,) = self.tags[key]
        return value


def main_of(family):
    return "cpu.pprof" if family == "go" else "profile.pprof"


def check(is_right, message):
    if not is_right:
        raise Refused(400, f"strict: {message}")


def nanoseconds(moment):
    found = isinstance(moment, str) and MOMENT.fullmatch(moment)
    check(found, f"the moment {moment!r}")
    seconds = datetime.datetime.fromisoformat(found[1]).replace(tzinfo=datetime.timezone.utc).timestamp()
    return int(seconds) * 10**9 + int(found[2])


def agent(request):
    return answer_of(request, AGENT, None)


def any_client(request):
    """Takes what any profiler sends; kept: (event, tags)."""
    if request.path != AGENT.split("?")[0]:
        return 200, b"{}", None
    boundary = re.search(r'boundary="?([^";]+)', request.headers["content-type"])[1].encode()
    for part in request.body.split(b"--" + boundary):
        head, _, content = part.partition(b"\r\n\r\n")
        if b'name="event"' in head:
            event = json.loads(content.rsplit(b"\r\n", 1)[0])
            tags = {}
            for tag in event["tags_profiler"].split(","):
                tags.setdefault(tag.partition(":")[0], []).append(tag.partition(":")[2])
            return 200, b"", (event, tags)
    raise Refused(400, "no event")


def intake(request, key=KEY):
    return answer_of(request, INTAKE, key)


def answer_of(request, path, key):
    try:
        return (202 if key else 200), b"", upload_of(request, path, key)
    except Refused as refused:
        return refused.status, refused.answer.encode(), None


def upload_of(request, path, key):
    if request.target != path:
        raise Refused(404, "404 page not found\n")
    if request.method != "POST":
        raise Refused(405, "405 method not allowed\n")
    boundary = headers_of(request, key)
    files = {}
    for name, file_name, mime, content in parts_of(request.body, boundary):
        check(name not in files, f"two parts are called {name}")
        is_event = name == "event"
        check(file_name == ("event.json" if is_event else name), f"{name} has the file name {file_name}")
        check(mime == ("application/json" if is_event else "application/octet-stream"), f"{name} is {mime}")
        files[name] = content
    check("event" in files, "there is no event")
    event = event_of(files.pop("event"))
    check(sorted(files) == sorted(event["attachments"]), f"attachments {event['attachments']} of {sorted(files)}")
    check(all(content[:2] == b"\x1f\x8b" for name, content in files.items() if name.endswith(".pprof")), "a profile is not compressed")
    upload = Upload(request, event, tags_of(event["tags_profiler"]), files)
    check(("go.trace" in files) == ("go_execution_traced" in upload.tags) == ("_dd.profiler.go_execution_trace_enabled" in upload.tags),
          f"a trace is there, or said to be, in {sorted(files)}")
    check(event["family"] == upload.tag("language"), f"family {event['family']} of language {upload.tag('language')}")
    types = (("samples", "cpu") if event["family"] == "go" else ("cpu-samples", "cpu-time"))
    check(not upload.profile or upload.profile.sample_types[:2] == list(zip(types, ("count", "nanoseconds"))),
          f"sample types {upload.profile and upload.profile.sample_types}")
    return upload


# ---- Headers

def headers_of(request, key):
    """The boundary."""
    headers = request.headers
    check(len(request.names) == len(set(request.names)), f"headers stand twice: {request.names}")
    allowed = HEADERS | ({"dd-api-key"} if key else set())
    check(set(headers) <= allowed, f"headers {sorted(set(headers) - allowed)}")
    if key and headers.get("dd-api-key") != key:
        raise Refused(403, '{"errors": ["Forbidden"]}')
    check(headers.get("content-length", "") == str(len(request.body)), "the length")
    if len(request.body) > MOST:
        raise Refused(413, "request entity too large")
    check(re.fullmatch(r"[A-Za-z0-9._-]+(:\d+)?", headers.get("host", "h")), f"the host {headers.get('host')!r}")
    check(headers.get("dd-evp-origin") == "pillion", "DD-EVP-ORIGIN")
    check(re.fullmatch(r"\d+\.\d+\.\d+", headers.get("dd-evp-origin-version", "")), "DD-EVP-ORIGIN-VERSION")
    container, entity = headers.get("datadog-container-id"), headers.get("datadog-entity-id")
    check(container is None or CONTAINER.fullmatch(container), f"Datadog-Container-ID {container!r}")
    check(entity == f"ci-{container}" if container else entity is None or re.fullmatch(r"in-[1-9]\d*", entity),
          f"Datadog-Entity-ID {entity!r} for {container!r}")
    found = BOUNDARY.fullmatch(headers.get("content-type", ""))
    check(found, f"Content-Type {headers.get('content-type')!r}")
    return found[1].encode()


# ---- The form

def parts_of(body, boundary):
    """(name, file name, type, content) of each: RFC 2046 5.1.1, with nothing before the first and behind the last."""
    check(body.startswith(b"--" + boundary + b"\r\n"), "it does not begin with the boundary")
    check(body.endswith(b"\r\n--" + boundary + b"--\r\n"), "it does not end with the boundary")
    inside = body[len(boundary) + 4:-(len(boundary) + 8)]
    for part in inside.split(b"\r\n--" + boundary + b"\r\n"):
        check(b"--" + boundary not in part, "the boundary stands in a part")
        head, empty, content = part.partition(b"\r\n\r\n")
        check(empty, "a part has no head")
        lines = [line.split(": ", 1) for line in head.decode("ascii").split("\r\n")]
        check([line[0] for line in lines] == ["Content-Disposition", "Content-Type"], f"the head of a part: {head!r}")
        found = DISPOSITION.fullmatch(lines[0][1])
        check(found, f"Content-Disposition {lines[0][1]!r}")
        yield found[1], found[2], lines[1][1], content


# ---- event.json

def event_of(content):
    def once(pairs):
        check(len({key for key, _ in pairs}) == len(pairs), f"a key stands twice: {[key for key, _ in pairs]}")
        return dict(pairs)
    try:
        event = json.loads(content.decode("utf-8"), object_pairs_hook=once)
    except ValueError as error:
        raise Refused(400, f"strict: event.json: {error}") from error
    check(isinstance(event, dict) and EVENT <= set(event) <= EVENT | MAY_BE, f"event.json has {sorted(event)}")
    check(event["version"] == "4" and isinstance(event["family"], str) and event["family"] in FAMILIES, "version or family")
    files = event["attachments"]
    check(isinstance(files, list) and all(isinstance(name, str) for name in files), "attachments")
    more = [name for name in files if name != main_of(event["family"])]
    check(set(more) <= OF_RUNTIMES and (not more or event["family"] == "go") and files, f"attachments {files}")
    check(event["endpoint_counts"] is None and event["internal"] == {}, "endpoint_counts or internal")
    check(nanoseconds(event["start"]) <= nanoseconds(event["end"]), "it ends before it starts")
    info_of(event["info"])
    if "process_tags" in event:
        process_tags_of(event["process_tags"])
    return event


def process_tags_of(text):
    """{"entrypoint.name": value}"""
    check(isinstance(text, str) and text, f"process_tags {text!r}")
    tags = dict(tag.partition(":")[::2] for tag in text.split(","))
    check(list(tags) == sorted(tags) and len(tags) == text.count(",") + 1, f"process_tags {text!r}")
    check(all(PROCESS_TAG.fullmatch(tag) for tag in text.split(",")), f"process_tags {text!r}")
    return tags


def info_of(info):
    check(isinstance(info, dict) and set(info) == {"application", "platform", "runtime", "profiler"}, f"info {info!r}")
    check(all(isinstance(value, dict) for value in info.values()), f"info {info!r}")
    for name in ("application", "platform", "runtime"):
        check(all(isinstance(value, str) and value for value in info[name].values()), f"info.{name}")
    nanoseconds(info["application"]["start_time"])
    profiler = dict(info["profiler"])
    settings = profiler.pop("settings")
    check(profiler.pop("ssi") == {"mechanism": "none"}, "info.profiler.ssi")
    check(set(profiler) == {"name", "version", "activation"}, f"info.profiler has {sorted(profiler)}")
    check(all(isinstance(value, str) for value in [*profiler.values(), *settings.values()]), "info.profiler")


def tags_of(text):
    tags = {}
    check(isinstance(text, str), "tags_profiler")
    for tag in text.split(","):
        check(TAG.fullmatch(tag) and len(tag.encode()) <= 200, f"the tag {tag!r}")
        key, _, value = tag.partition(":")
        tags.setdefault(key, []).append(value)
    check(ONCE <= set(tags), f"missing are the tags {sorted(ONCE - set(tags))}")
    twice = [key for key in AT_MOST_ONCE if len(tags.get(key, [])) > 1]
    check(not twice, f"the tags {twice} stand more than once")
    exact = {"language": "|".join(FAMILIES), "runtime_os": r"linux", "runtime_arch": r"amd64|arm64", "profile_seq": r"\d+",
             "process_id": r"\d+", "profiler_version": r"\d+\.\d+\.\d+"}
    for key, form in exact.items():
        check(re.fullmatch(form, tags[key][0]), f"the tag {key}:{tags[key][0]}")
    check(UUID.fullmatch(tags["runtime-id"][0]), f"runtime-id:{tags['runtime-id'][0]}")
    return tags
