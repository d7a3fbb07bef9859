"""allot explain pod/NAME or claim/NAME: why it waits, or what it got.

Worked out anew from the API, with the rights of whoever asks and by the rules of the
scheduler. What may not be read is said.
"""

import argparse
import json
import random
import sys
from dataclasses import replace

from allot import scheduler
from allot.api import Gates
from allot.base import RandomIds, SystemClock
from allot.client import Client
from allot.informers import Key

from . import asking, unmade

_KINDS = {
    "pod": "pod",
    "pods": "pod",
    "po": "pod",
    "claim": "claim",
    "resourceclaim": "claim",
    "resourceclaims": "claim",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="pod/NAME|claim/NAME", type=_what, help="what to explain")
    asking.arguments(parser)


def run(options: argparse.Namespace) -> int:
    kind, name = options.what

    async def question(client: Client, gates: Gates, namespace: str) -> int:
        reading = await scheduler.read(client, gates, namespace)
        asking.tell_unread("explain", reading.unread)
        why = _why(reading, kind, Key(namespace, name))
        if why is None:
            seen = "" if not reading.unread else " among what could be read"
            print(
                f'allot explain: there is no {kind} "{name}" in namespace {namespace}{seen}', file=sys.stderr
            )
            return 2
        if kind == "pod":
            causes = await unmade.causes(client, reading.pods[Key(namespace, name)], reading.snapshot)
            asking.tell_unread("explain", causes.unread)
            why = replace(why, notes=(*causes.notes, *why.notes))
        print(json.dumps(why.as_json(), indent=2) if options.json else why.text())
        return 0

    return asking.run("explain", options, question)


def _why(reading: scheduler.Reading, kind: str, key: Key) -> scheduler.Why | None:
    snapshot = reading.snapshot
    if kind == "claim":
        claim = snapshot.claim(key)
        return scheduler.why_claim(claim, snapshot, reading.pods.values()) if claim is not None else None
    pod = reading.pods.get(key)
    if pod is None:
        return None
    ids = RandomIds(random.Random(0))
    cycle = scheduler.Cycle(scheduler.default_plugins(ids, scheduler.Settings()))
    named = scheduler.names_of(snapshot, key.namespace)
    return scheduler.why_pod(pod, snapshot, cycle, SystemClock().now(), named)


def _what(text: str) -> tuple[str, str]:
    kind, slash, name = text.partition("/")
    if not slash or not name or kind.lower() not in _KINDS:
        raise argparse.ArgumentTypeError(f"{text!r} is neither pod/NAME nor claim/NAME")
    return _KINDS[kind.lower()], name
