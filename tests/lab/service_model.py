"""A request against the model that a cloud service publishes of itself: the model is the one Debian's botocore carries.

    model = service_model.get("ecs")
    model.problems("RegisterTaskDefinition", {"family": "x", ...})   -> ["containerDefinitions[0].cpus: no such member"]

botocore's own check looks at names and types; here values are looked at as well, where the model lists them.
"""
import gzip
import json
import subprocess

from . import cache, root

SUITE, PACKAGE = "trixie", "python3-botocore"
KINDS = {"string": str, "boolean": bool, "integer": int, "long": int, "structure": dict, "list": list, "map": dict}


class Model:
    def __init__(self, source):
        self.shapes, self.operations = source["shapes"], source["operations"]

    def problems(self, operation, request):
        return list(self._check(self.operations[operation]["input"]["shape"], request, ""))

    def _check(self, name, value, where):
        shape = self.shapes[name]
        kind = KINDS[shape["type"]]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            yield f"{where}: wants {shape['type']}, got {value!r}"
        elif shape["type"] == "structure":
            yield from self._structure(shape, value, where)
        elif shape["type"] == "list":
            for i, item in enumerate(value):
                yield from self._check(shape["member"]["shape"], item, f"{where}[{i}]")
        elif shape["type"] == "map":
            for key, item in value.items():
                yield from self._check(shape["key"]["shape"], key, f"{where}.{key}")
                yield from self._check(shape["value"]["shape"], item, f"{where}.{key}")
        elif "enum" in shape and value not in shape["enum"]:
            yield f"{where}: {value!r} is none of {', '.join(shape['enum'])}"

    def _structure(self, shape, value, where):
        before = f"{where}." if where else ""
        for name in shape.get("required", []):
            if name not in value:
                yield f"{before}{name}: missing"
        for name, item in value.items():
            if name in shape["members"]:
                yield from self._check(shape["members"][name]["shape"], item, before + name)
            else:
                yield f"{before}{name}: no such member"


def get(service):
    """The newest model of a service; root.Unreachable when it can neither be had nor is kept."""
    kept = cache.folder("models") / f"{service}.json"
    with cache.locked("models"):
        if not kept.exists():
            kept.write_bytes(_of_package(service))
    return Model(json.loads(kept.read_text()))


def _of_package(service):
    package = root.Apt(SUITE).one(PACKAGE)
    listed = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE, check=True).stdout
    names = subprocess.run(["tar", "-t"], input=listed, stdout=subprocess.PIPE, check=True).stdout.decode().split("\n")
    found = sorted(name for name in names if f"/data/{service}/" in name and "/service-2.json" in name)
    if not found:
        raise root.Unreachable(f"{package.name} has no model of {service}")
    text = subprocess.run(["tar", "-x", "-O", found[-1]], input=listed, stdout=subprocess.PIPE, check=True).stdout
    return gzip.decompress(text) if found[-1].endswith(".gz") else text
