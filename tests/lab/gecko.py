"""A reader of the Firefox Profiler's processed format (version 60) that shares nothing with the product.

    profile = gecko.check(path)        # the format's rules; AssertionError says which one is broken
    profile.threads                    # each with name, process, pid, tid and samples: (time, weight in ns, stack root first)

The rules are those of src/types/profile.ts and docs-developer/CHANGELOG-formats.md of that project, as far as a profiler
that writes no markers meets them.
"""
import json
from pathlib import Path
from types import SimpleNamespace

COLOURS = {"transparent", "purple", "green", "orange", "yellow", "lightblue", "blue", "brown", "magenta", "red", "lightred",
           "darkgrey", "grey"}
TABLES = {  # column -> what its values point at: a table, "strings", "libs", "categories"; None: no place
    "stackTable": {"frame": "frameTable", "prefix": None},
    "frameTable": {"address": None, "inlineDepth": None, "category": "categories", "subcategory": None, "func": "funcTable",
                   "nativeSymbol": "nativeSymbols", "innerWindowID": None, "line": None, "column": None},
    "funcTable": {"name": "strings", "isJS": None, "relevantForJS": None, "resource": "resourceTable", "source": "sources",
                  "lineNumber": None, "columnNumber": None},
    "resourceTable": {"lib": "libs", "name": "strings", "host": "strings", "type": None},
    "nativeSymbols": {"libIndex": "libs", "address": None, "name": "strings", "functionSize": None},
    "sources": {"uuid": None, "filename": "strings"},
}
MARKERS = {"data", "name", "startTime", "endTime", "phase", "category"}
META = {"interval": (int, float), "startTime": (int, float), "processType": int, "product": str, "stackwalk": int, "version": int,
        "preprocessedProfileVersion": int, "categories": list, "markerSchema": list}
LIB = {"arch", "name", "path", "debugName", "debugPath", "breakpadId", "codeId"}
THREAD = {"processType": str, "processStartupTime": (int, float), "registerTime": (int, float), "pausedRanges": list, "name": str,
          "isMainThread": bool, "processName": str, "pid": str, "tid": (int, str)}


def _has(what, kinds):
    for key, kind in kinds.items():
        assert isinstance(what.get(key), kind), (key, what.get(key))


def _columns(table, columns):
    for name in columns:
        assert len(table[name]) == table["length"], (name, len(table[name]), table["length"])


def check(path):
    document = json.loads(Path(path).read_text())
    meta, shared = document["meta"], document["shared"]
    _has(meta, META)
    assert meta["preprocessedProfileVersion"] == 60
    assert all(c["color"] in COLOURS and c["subcategories"] for c in meta["categories"])
    assert any(c["color"] == "grey" for c in meta["categories"]), "the default category"
    assert all(LIB <= set(lib) and len(lib["breakpadId"]) in (0, 33) for lib in document["libs"])
    sizes = {"strings": len(shared["stringArray"]), "libs": len(document["libs"]), "categories": len(meta["categories"])}
    sizes.update({name: shared[name]["length"] for name in TABLES})
    for name, columns in TABLES.items():
        _columns(shared[name], columns)
        for column, target in columns.items():
            if target:
                lowest = -1 if column == "resource" else 0
                assert all(v is None or lowest <= v < sizes[target] for v in shared[name][column]), (name, column)
    stacks = shared["stackTable"]
    assert all(prefix is None or 0 <= prefix < row for row, prefix in enumerate(stacks["prefix"])), "callers come first"
    names = [shared["stringArray"][i] for i in shared["funcTable"]["name"]]
    paths = []
    for frame, prefix in zip(stacks["frame"], stacks["prefix"]):
        paths.append((*(paths[prefix] if prefix is not None else ()), names[shared["frameTable"]["func"][frame]]))
    return SimpleNamespace(meta=meta, document=document, threads=[_thread(t, paths) for t in document["threads"]])


def _thread(thread, paths):
    _has(thread, THREAD)
    samples = thread["samples"]
    _columns(samples, ("stack", "time", "weight", "threadCPUDelta"))
    _columns(thread["markers"], MARKERS)
    assert samples["weightType"] in ("samples", "tracing-ms", "bytes")
    assert samples["time"] == sorted(samples["time"])
    unit = 1e6 if samples["weightType"] == "tracing-ms" else 1
    rows = [(time, round(weight * unit), paths[stack]) for time, weight, stack in
            zip(samples["time"], samples["weight"], samples["stack"])]
    return SimpleNamespace(name=thread["name"], process=thread["processName"], pid=thread["pid"], tid=thread["tid"], samples=rows)


def total(profile):
    return sum(weight for thread in profile.threads for _, weight, _ in thread.samples)
