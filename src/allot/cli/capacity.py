"""allot capacity: how many more claims of a kind fit now, by node and in all.

The claim is that of a ResourceClaimTemplate in the cluster (`--template NAME`) or one in a
file (`--claim FILE`: a ResourceClaim or a ResourceClaimTemplate, as JSON or YAML). Computed
by allocating on copies until nothing fits any more.
"""

import argparse
import json
import random
import sys
from pathlib import Path
from typing import Any

import msgspec
import yaml

from allot import scheduler
from allot.allocation import Refused
from allot.api import Gates, errors, meta, resource
from allot.base import RandomIds
from allot.client import Client

from . import asking

_KINDS = ("ResourceClaim", "ResourceClaimTemplate")


def arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--template", metavar="NAME", help="of a ResourceClaimTemplate in the namespace")
    which.add_argument("--claim", metavar="FILE", type=Path, help="a claim or a template; - is stdin")
    asking.arguments(parser)


def run(options: argparse.Namespace) -> int:
    async def question(client: Client, gates: Gates, namespace: str) -> int:
        try:
            fields = (
                await _template(client, options.template, namespace)
                if options.template
                else _file(options.claim)
            )
            spec = _spec(fields)
        except errors.NotFound as missing:
            print(f"allot capacity: {missing}", file=sys.stderr)
            return 2
        except _NotAClaim as wrong:
            print(f"allot capacity: {wrong}", file=sys.stderr)
            return 1
        reading = await scheduler.read(client, gates)
        asking.tell_unread("capacity", reading.unread)
        claim = resource.ResourceClaim(metadata=meta.ObjectMeta(name="one", namespace=namespace), spec=spec)
        room = scheduler.room_for([claim], reading.snapshot, RandomIds(random.Random(0)))
        if isinstance(room, Refused):
            print(f"allot capacity: {room.error}", file=sys.stderr)
            return 1
        print(json.dumps(room.as_json()) if options.json else _text(room))
        return 0

    return asking.run("capacity", options, question)


class _NotAClaim(Exception):
    pass


async def _template(client: Client, name: str, namespace: str) -> dict[str, Any]:
    found = await client.resource(resource.limits.GROUP, "v1", "resourceclaimtemplates").get(name, namespace)
    return dict(found.fields)


def _file(path: Path) -> dict[str, Any]:
    """The first claim or template among the documents of a file."""
    try:
        documents = list(yaml.safe_load_all(sys.stdin if str(path) == "-" else path.read_text()))
    except yaml.YAMLError as wrong:
        raise _NotAClaim(f"{path}: {wrong}") from None
    for fields in documents:
        if isinstance(fields, dict) and fields.get("kind") in _KINDS:
            return fields
    raise _NotAClaim(f"{path}: neither a ResourceClaim nor a ResourceClaimTemplate is in it")


def _spec(fields: dict[str, Any]) -> resource.ResourceClaimSpec:
    spec = fields.get("spec") or {}
    if fields.get("kind") == "ResourceClaimTemplate":
        spec = spec.get("spec") or {}
    try:
        return msgspec.convert(spec, resource.ResourceClaimSpec)
    except msgspec.ValidationError as wrong:
        raise _NotAClaim(str(wrong)) from None


def _text(room: scheduler.Room) -> str:
    width = max((len(name) for name in room.by_node), default=0)
    marks = dict.fromkeys(room.cordoned, "  cordoned")
    lines = [f"{name:<{width}}  {count}{marks.get(name, '')}" for name, count in room.by_node.items()]
    shared = ", since nodes share devices" if room.is_shared else ""
    return "\n".join([*lines, f"{room.total} more fit in all{shared}"])
