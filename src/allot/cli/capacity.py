"""allot capacity: how many more claims of a kind fit now, by node and in all.

The claim is that of a ResourceClaimTemplate in the cluster (`--template NAME`) or one in a
file (`--claim FILE`: a ResourceClaim or a ResourceClaimTemplate, as JSON or YAML). Computed
by allocating on copies until nothing fits any more. Without the right to see what others have,
the answer is how many fit at most, and the exit status is 1. It is 2 where there is no such claim
or template, or what is given is none.
"""

import argparse
import json
import random
import sys

from allot import scheduler
from allot.allocation import Refused
from allot.api import Fields, Gates, errors, meta, resource
from allot.base import RandomIds, SystemClock
from allot.client import Client

from . import asking, flags
from .claimfile import Draft, NotAClaim, first_claim, read_claim, spec_of


def arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--template",
        metavar="NAME",
        type=flags.object_name,
        help="of a ResourceClaimTemplate in the namespace",
    )
    which.add_argument(
        "--claim",
        metavar="FILE",
        type=flags.path,
        help="a claim or a template, in the namespace it names if it does; - is stdin",
    )
    asking.arguments(parser)


def run(options: argparse.Namespace) -> int:
    async def question(client: Client, gates: Gates, namespace: str) -> int:
        try:
            if options.template:
                spec = await _template(client, options.template, namespace)
            else:
                draft = first_claim(options.claim)
                namespace = draft.namespace(options.namespace) or namespace
                spec = await _from_file(client, draft, gates, namespace)
        except errors.NotFound as missing:
            print(f"allot capacity: {missing}", file=sys.stderr)
            return 2
        except NotAClaim as wrong:
            for problem in wrong.problems:
                print(f"allot capacity: {problem}", file=sys.stderr)
            return 2
        reading = await scheduler.read(client, gates, namespace)
        asking.tell_unread("capacity", [one.words for one in reading.unread])
        if reading.hides_supply:
            return asking.UNANSWERED
        claim = resource.ResourceClaim(metadata=meta.ObjectMeta(name="one", namespace=namespace), spec=spec)
        room = scheduler.room_for([claim], reading.snapshot, RandomIds(random.Random(0)))
        if isinstance(room, Refused):
            print(f"allot capacity: {room.error}", file=sys.stderr)
            return 2
        is_certain = not reading.hides_use
        told = {**room.as_json(), "certain": is_certain}
        print(json.dumps(told) if options.json else _text(room, is_certain))
        return 0 if is_certain else asking.UNANSWERED

    return asking.run("capacity", options, question)


async def _template(client: Client, name: str, namespace: str) -> resource.ResourceClaimSpec:
    templates = client.resource(resource.limits.GROUP, "v1", "resourceclaimtemplates")
    try:
        found = await templates.get(name, namespace)
    except errors.NotFound:
        raise errors.NotFound(f'there is no claim template "{name}" in namespace {namespace}') from None
    return spec_of(dict(found.fields))


async def _from_file(
    client: Client, draft: Draft, gates: Gates, namespace: str
) -> resource.ResourceClaimSpec:
    found = read_claim(draft, gates, await _namespace(client, namespace), SystemClock())
    for note in found.notes:
        print(f"allot capacity: {note}", file=sys.stderr)
    return found.spec


async def _namespace(client: Client, name: str) -> Fields | None:
    try:
        found = await client.resource("", "v1", "namespaces", namespaced=False).get(name)
    except (errors.NotFound, errors.Forbidden):
        return None
    return dict(found.fields)


def _text(room: scheduler.Room, is_certain: bool) -> str:
    width = max((len(name) for name in room.by_node), default=0)
    lines = [f"{name:<{width}}  {_count(count)}{_mark(name, room)}" for name, count in room.by_node.items()]
    shared = ", since nodes share devices" if room.is_shared else ""
    fit = "any number fits" if room.total is None else f"{room.total} more fit"
    fit = fit if is_certain else f"at most {fit}"
    return "\n".join([*lines, f"{fit} in all{shared}"])


def _count(count: int | None) -> str:
    return "any number" if count is None else str(count)


def _mark(name: str, room: scheduler.Room) -> str:
    closed = f"  {room.closed[name]}: not counted" if name in room.closed else ""
    return closed + ("  at least: it takes too long to tell" if name in room.undecided else "")
