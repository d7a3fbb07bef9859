"""Where the time of a write goes: a profile of creates in process, by part of the code.

    bench/profile_writes.py [--objects N]

Prints one JSON object: for each kind the share of each part. The profiler makes calls look
dearer than they are, so shares are a guide to where to look, not a sum to rely on.
"""

import argparse
import cProfile
import json
import pstats
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import uvloop
from inprocess import measure

from allot.apiserver import ApiServer
from allot.store import open_store
from apiserver import KINDS

PARTS = (
    ("allot/store/", "store"),
    ("allot/api/schema/", "schema: decode, check, defaults"),
    ("allot/apiserver/apply/", "field ownership"),
    ("allot/apiserver/security/", "authorization"),
    ("allot/api/kinds/", "rules of the kind"),
    ("allot/api/resource/", "rules of the kind"),
    ("allot/api/names", "rules of the kind"),
    ("allot/api/quantity", "rules of the kind"),
    ("allot/api/field", "rules of the kind"),
    ("allot/api/object", "encoding of objects"),
    ("allot/apiserver/", "verbs, cache, watch"),
    ("allot/", "rest of ours"),
    ("asyncio", "event loop"),
    ("uvloop", "event loop"),
)


def part_of(filename: str, function: str) -> str:
    for piece, part in PARTS:
        if piece in filename:
            return part
    if "msgspec" in function or "Decoder" in function or "Encoder" in function:
        return "JSON in C"
    return "interpreter and standard library"


async def profile(plural: str, count: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store("sqlite", Path(folder))
        api = ApiServer(store)
        await api.start()
        profiler = cProfile.Profile()
        profiler.enable()
        await measure(api, plural, count, 32)
        profiler.disable()
        await api.close()
        await store.close()
    spent: Counter[str] = Counter()
    for (filename, _, function), (_, _, own, _, _) in pstats.Stats(profiler).stats.items():  # type: ignore[attr-defined]
        spent[part_of(filename, function)] += own
    total = sum(spent.values())
    return {part: f"{seconds / total:.0%}" for part, seconds in spent.most_common()}


async def run(count: int) -> dict[str, Any]:
    return {plural: await profile(plural, count) for plural in KINDS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=3000)
    print(json.dumps(uvloop.run(run(parser.parse_args().objects)), indent=1))


if __name__ == "__main__":
    main()
