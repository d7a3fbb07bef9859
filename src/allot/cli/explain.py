"""allot explain pod/NAME or claim/NAME: why it waits, or what it got.

Worked out anew from the API, with the rights of whoever asks and by the rules of the
scheduler. What may not be read is said, and where the answer depends on it there is none.
"""

import argparse
import json
import sys
from dataclasses import replace

from allot import scheduler
from allot.api import Gates
from allot.base import SystemClock
from allot.client import Client
from allot.informers import Key

from . import asking, flags, misnamed, unmade

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
    parser.add_argument(
        "--binding-timeout",
        type=flags.seconds,
        default=scheduler.Settings().binding_timeout_s,
        metavar="S",
        help="the scheduler's own, if it was started with one (default: %(default).0f)",
    )


def run(options: argparse.Namespace) -> int:
    kind, name = options.what
    settings = scheduler.Settings(binding_timeout_s=options.binding_timeout)

    async def question(client: Client, gates: Gates, namespace: str) -> int:
        reading = await scheduler.read(client, gates, namespace)
        asking.tell_unread("explain", [one.words for one in reading.unread])
        why = _why(reading, kind, Key(namespace, name), settings)
        if why is None:
            if reading.hidden(scheduler.PODS if kind == "pod" else scheduler.CLAIMS):
                return asking.UNANSWERED
            print(f'allot explain: there is no {kind} "{name}" in namespace {namespace}', file=sys.stderr)
            return 2
        if kind == "pod":
            pod = reading.pods[Key(namespace, name)]
            causes = await unmade.causes(client, pod, reading.snapshot)
            asking.tell_unread("explain", causes.unread)
            why = replace(why, notes=(*causes.notes, *misnamed.notes(pod, reading.snapshot), *why.notes))
        print(json.dumps(why.as_json(), indent=2) if options.json else why.text())
        return 0 if why.is_certain else asking.UNANSWERED

    return asking.run("explain", options, question)


def _why(
    reading: scheduler.Reading, kind: str, key: Key, settings: scheduler.Settings
) -> scheduler.Why | None:
    if kind == "claim":
        claim = reading.snapshot.claim(key)
        return scheduler.why_claim(claim, reading) if claim is not None else None
    pod = reading.pods.get(key)
    if pod is None:
        return None
    named = scheduler.names_of(reading.snapshot, key.namespace)
    return scheduler.why_pod(pod, reading, SystemClock().now(), named, settings)


def _what(text: str) -> tuple[str, str]:
    kind, slash, name = text.partition("/")
    if not slash or not name or kind.lower() not in _KINDS:
        raise argparse.ArgumentTypeError(f"{text!r} is neither pod/NAME nor claim/NAME")
    return _KINDS[kind.lower()], name
