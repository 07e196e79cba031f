"""OpenTelemetry's profiles, read by what each release of the protocol publishes of itself.

    release = otlp.release("1.9")            # or Unavailable, with the reason
    request = release.decode(data)           # an ExportProfilesServiceRequest as nested dicts, by the release's own names
    otlp.check(request, "1.9")               # the format's rules; the profiles found, flat

The messages' fields come from the descriptors that the project's own compiler has written into its Go modules, which are
fetched by version and hash into build/lab and shared with nothing of the product. The decoder is strict: a field that the
release does not have, another wire type than its own, or numbers that are not packed are refused.
"""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from . import cache

BASE = "go.opentelemetry.io/proto/otlp"
# Release of the protocol: module, version, hash of what it holds.
RELEASES = {
    "1.8": [(BASE, "v1.8.0", "h1:fRAZQDcAFHySxpJ1TwlA1cJ4tvcrw7nXl9xWWC8N5CE="),
            (f"{BASE}/profiles/v1development", "v0.1.0", "h1:2SRSI1tq9ShNZDTDdawabG2rvibKNZukZbgptYPDYY4="),
            (f"{BASE}/collector/profiles/v1development", "v0.1.0", "h1:oHR8pwK4RbMMTIyu/mp+1ZaolOXMTN1/t9oGvLpd74A=")],
    "1.9": [(BASE, "v1.9.0", "h1:l706jCMITVouPOqEnii2fIAuO3IVGBRPV5ICjceRb/A="),
            (f"{BASE}/profiles/v1development", "v0.2.0", "h1:yXinc284C6bmzA1r9jk7MxAhrBIIOH3qwmqwBmylZrA="),
            (f"{BASE}/collector/profiles/v1development", "v0.2.0", "h1:40vBjolEOioNBl8zPj1wxqlA7kJ82RxR4HnUv7W8zRI=")],
    "1.10": [(BASE, "v1.10.0", "h1:IQRWgT5srOCYfiWnpqUYz9CVmbO8bFmKcwYxpuCSL2g="),
             (f"{BASE}/profiles/v1development", "v0.3.0", "h1:ZQs05qo3Yh4KUHeVH6v89xErwmsvgA/cLX2/w5Ikp+k="),
             (f"{BASE}/collector/profiles/v1development", "v0.3.0", "h1:AWBLtJn3ajH399gyOuJdqPsC9w152x3xGVVO/UK3vyM=")],
}
PREFIX = ".opentelemetry.proto."
REQUEST = PREFIX + "collector.profiles.v1development.ExportProfilesServiceRequest"
# Of descriptor.proto, the types of fields as they stand on the wire: 0 varint, 1 and 5 fixed, 2 bytes.
WIRES = {1: 1, 2: 5, 3: 0, 4: 0, 5: 0, 6: 1, 7: 5, 8: 0, 9: 2, 11: 2, 12: 2, 13: 0, 14: 0, 15: 5, 16: 1, 17: 0, 18: 0}
SIGNED = {3, 5, 14, 15, 16}
STRING, MESSAGE, REPEATED = 9, 11, 3


class Unavailable(Exception):
    """The release's own words cannot be had; the text says why."""


class Refused(Exception):
    """No message of this release."""


def _fetch(module, version, digest):
    """The folder of a module, fetched once."""
    kept = cache.folder("otlp") / f"{module.replace('/', '-')}@{version}"
    if kept.is_dir():
        return kept
    go = shutil.which("go")
    if not go:
        raise Unavailable("not installed: go")
    home = cache.folder("go")
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "GOPATH": str(home / "path"), "GOTOOLCHAIN": "local",
                   "GO111MODULE": "on", "GOFLAGS": "-modcacherw"}
    for name in ("GOPROXY", "GOSUMDB"):
        environment[name] = subprocess.run([go, "env", name], stdout=subprocess.PIPE, text=True).stdout.strip()
    try:
        told = subprocess.run([go, "mod", "download", "-json", f"{module}@{version}"], env=environment, cwd=home, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{module}@{version} cannot be fetched within 120 s") from None
    if told.returncode:
        raise Unavailable(f"{module}@{version} cannot be fetched: {told.stdout.strip()[-200:]}")
    answer = json.loads(told.stdout)
    assert answer["Sum"] == digest, f"{module}@{version} is not what it was: {answer['Sum']}"
    part = kept.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(answer["Dir"], part, copy_function=shutil.copyfile)
    part.rename(kept)
    return kept


# ---- The wire

def _varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Refused("a number is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _value(data, at, wire):
    if wire == 0:
        return _varint(data, at)
    if wire == 2:
        length, at = _varint(data, at)
    elif wire in (1, 5):
        length = 8 if wire == 1 else 4
    else:
        raise Refused(f"wire type {wire}")
    if at + length > len(data):
        raise Refused("a field runs past the end")
    value = data[at:at + length]
    return (value if wire == 2 else int.from_bytes(value, "little")), at + length


def _fields(data):
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        value, at = _value(data, at, key & 7)
        yield key >> 3, key & 7, value


# ---- Descriptors: FileDescriptorProto{2 package, 4 message}, DescriptorProto{1 name, 2 field, 3 nested},
# FieldDescriptorProto{1 name, 3 number, 4 label, 5 type, 6 type_name}

class Field:
    def __init__(self, data):
        found = {number: value for number, _, value in _fields(data)}
        self.name, self.number, self.kind = found[1].decode(), found[3], found[5]
        self.repeated = found[4] == REPEATED
        self.message = found[6].decode() if self.kind == MESSAGE else None
        self.wire = WIRES[self.kind]


def _descriptors(text):
    """What protoc-gen-go keeps of the file it has read."""
    found = re.search(r"_rawDesc = \[\]byte\{([^}]*)\}", text)
    if not found:
        return b""
    return bytes(int(number, 16) for number in re.findall(r"0x([0-9a-f]{2})", found[1]))


def _add_messages(known, prefix, data, number_of_messages):
    for number, _, value in _fields(data):
        if number == number_of_messages:
            name = next(text for inner, _, text in _fields(value) if inner == 1).decode()
            known[f"{prefix}.{name}"] = {field.number: field for field in
                                         (Field(text) for inner, _, text in _fields(value) if inner == 2)}
            _add_messages(known, f"{prefix}.{name}", value, 3)


class Release:
    def __init__(self, name):
        self.name, self.messages = name, {}
        for module, version, digest in RELEASES[name]:
            for path in sorted(_fetch(module, version, digest).rglob("*.pb.go")):
                data = _descriptors(path.read_text())
                package = next((value.decode() for number, _, value in _fields(data) if number == 2), "")
                _add_messages(self.messages, f".{package}", data, 4)
        if REQUEST not in self.messages:
            raise Unavailable(f"the modules of release {name} hold no profiles")

    def decode(self, data, message=REQUEST):
        fields, found = self.messages[message], {}
        for number, wire, value in _fields(data):
            field = fields.get(number)
            if field is None:
                raise Refused(f"{message} has no field {number}")
            packed = field.repeated and field.wire != 2
            if wire != (2 if packed else field.wire):
                raise Refused(f"{message}.{field.name} has the wire type {wire}")
            if packed:
                value = self._numbers(field, value)
            else:
                value = self._one(field, value)
            if field.repeated:
                found[field.name] = found.get(field.name, []) + (value if packed else [value])
            elif field.name in found:
                raise Refused(f"{message}.{field.name} stands there twice")
            else:
                found[field.name] = value
        return found

    def _numbers(self, field, data):
        found, at = [], 0
        while at < len(data):
            value, at = _value(data, at, field.wire)
            found.append(self._one(field, value))
        return found

    def _one(self, field, value):
        if field.kind == MESSAGE:
            return self.decode(value, field.message)
        if field.kind == STRING:
            return value.decode("utf-8")  # or an error
        return value - (1 << 64) if field.kind in SIGNED and value >> 63 else value


def release(name):
    with cache.locked("otlp"):
        return Release(name)


# ---- The format's rules

TABLES = ("mapping_table", "location_table", "function_table", "link_table", "string_table", "attribute_table", "stack_table")


class Profile:
    """One of a request: `samples` are (frames root first, attributes, value)."""

    def __init__(self, resource, kind, period, samples, raw):
        self.resource, self.kind, self.period, self.samples, self.raw = resource, kind, period, samples, raw

    @property
    def total(self):
        return sum(value for _, _, value in self.samples)


def _any(value):
    assert len(value) == 1, f"a value of {len(value)} kinds"
    return next(iter(value.values()))


class _Dictionary:
    def __init__(self, tables, newer):
        self.tables, self.lines = tables, "lines" if newer else "line"
        self.used = {name: {0} for name in TABLES}
        for name in TABLES:
            rows = [json.dumps(row, sort_keys=True, default=bytes.hex) for row in tables.get(name, [])]
            assert rows, f"{name} has no element 0"
            assert len(set(rows)) == len(rows), f"{name} holds something twice"
            self.empty(name, tables[name][0])

    @staticmethod
    def empty(name, row):
        """The zero value, said or not: a value of no kind. Of a link nothing is said: readers take ids of zeros for a link."""
        assert name != "link_table" or not any(row.values()), f"element 0 of {name} is {row}"
        told = {key: value for key, value in row.items() if value and (isinstance(value, int) or any(value))} if isinstance(row, dict) else row
        assert not told, f"element 0 of {name} is {row}"

    def at(self, name, index):
        assert 0 <= index < len(self.tables[name]), f"{name}[{index}] of {len(self.tables[name])}"
        self.used[name].add(index)
        return self.tables[name][index]

    def text(self, index):
        return self.at("string_table", index)

    def attributes(self, indices):
        found = {}
        for index in indices:
            assert index != 0, "an attribute that is none"
            row = self.at("attribute_table", index)
            key = self.text(row["key_strindex"])
            assert key and key not in found, f"{key!r} stands there twice"
            self.text(row.get("unit_strindex", 0))
            found[key] = _any(row["value"])
        return found

    def frames(self, stack):
        found = []
        for index in self.at("stack_table", stack).get("location_indices", []):
            assert index != 0
            location = self.at("location_table", index)
            mapping = self.at("mapping_table", location.get("mapping_index", 0))
            self.text(mapping.get("filename_strindex", 0))
            self.attributes(mapping.get("attribute_indices", []))
            self.attributes(location.get("attribute_indices", []))
            for line in location.get(self.lines, []):
                function = self.at("function_table", line["function_index"])
                for part in ("system_name_strindex", "filename_strindex"):
                    self.text(function.get(part, 0))
                found.append(self.text(function["name_strindex"]))
        return found[::-1]

    def kind(self, value_type):
        return f"{self.text(value_type.get('type_strindex', 0))}/{self.text(value_type.get('unit_strindex', 0))}"


def _profile(raw, resource, dictionary, newer):
    samples, seen = [], set()
    kind = dictionary.kind(raw["sample_type"])
    period = f"{dictionary.kind(raw['period_type'])}={raw['period']}" if "period_type" in raw else ""
    start, end = raw.get("time_unix_nano", 0), raw.get("time_unix_nano", 0) + raw.get("duration_nano", 0)
    assert len(raw["profile_id"]) == 16 and any(raw["profile_id"])
    dictionary.attributes(raw.get("attribute_indices", []))
    for sample in raw.get("samples" if newer else "sample", []):
        attributes = dictionary.attributes(sample.get("attribute_indices", []))
        identity = (sample.get("stack_index", 0), tuple(sorted(attributes.items())))
        assert identity not in seen, f"{identity} stands there twice"
        seen.add(identity)
        assert not sample.get("timestamps_unix_nano") and len(sample["values"]) == 1 and sample["values"][0] > 0, sample
        samples.append((dictionary.frames(sample.get("stack_index", 0)), attributes, sample["values"][0]))
    assert end >= start
    return Profile(resource, kind, period, samples, raw)


def check(request, name):
    """The profiles of a request that keeps to the rules of the format."""
    newer, found = name != "1.8", []
    dictionary = _Dictionary(request["dictionary"], newer)
    for resource_profiles in request["resource_profiles"]:
        keys = [pair["key"] for pair in resource_profiles["resource"].get("attributes", [])]
        assert len(set(keys)) == len(keys) < 30, keys
        resource = {pair["key"]: _any(pair["value"]) for pair in resource_profiles["resource"].get("attributes", [])}
        assert resource_profiles["schema_url"].startswith("https://opentelemetry.io/schemas/1.")
        for scope in resource_profiles["scope_profiles"]:
            assert scope["scope"]["name"] == "pillion" and scope["scope"]["version"]
            found += [_profile(raw, resource, dictionary, newer) for raw in scope["profiles"]]
    for table in TABLES:
        unused = set(range(len(dictionary.tables[table]))) - dictionary.used[table]
        assert not unused, f"nobody refers to {table} {sorted(unused)[:5]}"
    ids = [profile.raw["profile_id"] for profile in found]
    assert len(set(ids)) == len(ids)
    return found


def cpu_ns(profiles):
    """CPU time as receivers find it: value x period."""
    return sum(profile.total * profile.raw["period"] for profile in profiles
               if profile.kind == "samples/count" and profile.period.startswith("cpu/nanoseconds="))
