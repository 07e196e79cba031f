"""A reader of traces in the Trace Event Format (JSON) that shares nothing with the product.

    tracks = trace_events.check(path)      # {(pid, tid): track}: name, process, slices (begin ns, end ns, depth, name)

The rules are those of the format's published description for duration events: B and E nest on each track, in the order of time.
"""
import json
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace


def check(path):
    document = json.loads(Path(path).read_text(), parse_float=Decimal)
    assert document["displayTimeUnit"] in ("ms", "ns")
    tracks = {}
    for event in document["traceEvents"]:
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        track = tracks.setdefault((event["pid"], event["tid"]), SimpleNamespace(name=None, process=None, slices=[], open=[], at=0))
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            setattr(track, {"process_name": "process", "thread_name": "name"}[event["name"]], event["args"]["name"])
            continue
        at = int(Decimal(event["ts"]) * 1000)
        assert event["ph"] in "BE" and at >= track.at, "events of a track are in order"
        track.at = at
        if event["ph"] == "B":
            assert isinstance(event["name"], str) and event["cat"]
            track.open.append((at, event["name"]))
        else:
            begin, name = track.open.pop()
            track.slices.append((begin, at, len(track.open), name))
    assert all(not track.open and track.name is not None for track in tracks.values())
    return tracks
