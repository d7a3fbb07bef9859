"""allot record FILE: what a cluster's scheduler does, seen from outside, for `allot replay`.

Any Kubernetes will do, and any scheduler: whoever may read nodes, pods, claims, slices and classes sees where
pods go and which devices they get. What a scheduler of ours knew and thought is in a record that it writes
itself: `allot scheduler --record FILE`. The file holds no secrets, as that of `allot dump`, and stays within
its bounds. An interrupt ends the record; a later one goes on with the same file.
"""

import argparse
import asyncio
import sys

from allot import replay
from allot.apiserver import identities
from allot.informers import Telemetry

from . import component, recording
from .component import Running
from .wording import plain

LOOK_EVERY_S = 0.5


def arguments(parser: argparse.ArgumentParser) -> None:
    recording.arguments(parser)
    component.reaching(parser)


def run(options: argparse.Namespace) -> int:
    try:
        writing = recording.begun(options)
    except (replay.BadRecord, OSError) as wrong:
        print(f"allot record: {plain(wrong)}", file=sys.stderr)
        return 2

    async def work(on: Running) -> None:
        telemetry = Telemetry(on.metrics, on.clock)
        following = asyncio.ensure_future(
            replay.follow(on.client, on.informers, on.clock, telemetry, on.gates, writing.put, ready=on.ready)
        )
        try:
            while not writing.is_over and not following.done():  # without a file there is nothing to do
                await asyncio.wait([following], timeout=LOOK_EVERY_S)
        finally:
            following.cancel()
        if following.done() and not following.cancelled():
            following.result()

    try:
        return component.run("record", "", identities.SCHEDULER, options, work)
    finally:
        writing.close()
