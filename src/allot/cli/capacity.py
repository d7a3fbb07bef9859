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

from . import asking, flags

_KINDS = {
    "ResourceClaim": resource.RESOURCE_CLAIM,
    "ResourceClaimTemplate": resource.RESOURCE_CLAIM_TEMPLATE,
}


def arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--template",
        metavar="NAME",
        type=flags.object_name,
        help="of a ResourceClaimTemplate in the namespace",
    )
    which.add_argument("--claim", metavar="FILE", type=flags.path, help="a claim or a template; - is stdin")
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
        reading = await scheduler.read(client, gates, namespace)
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
    except (yaml.YAMLError, UnicodeDecodeError) as wrong:
        raise _NotAClaim(f"{path}: {wrong}") from None
    for fields in documents:
        if isinstance(fields, dict) and fields.get("kind") in _KINDS:
            return fields
    raise _NotAClaim(f"{path}: neither a ResourceClaim nor a ResourceClaimTemplate is in it")


def _spec(fields: dict[str, Any]) -> resource.ResourceClaimSpec:
    """In the hub form, whichever version it was written for."""
    kind = _KINDS[fields["kind"]]
    name = str(fields.get("apiVersion") or "").rpartition("/")[2]
    version = kind.version(name)
    if version is None:
        served = ", ".join(f"{kind.group}/{one.name}" for one in kind.versions)
        raise _NotAClaim(f"apiVersion {fields.get('apiVersion')!r} is none of {served}")
    try:
        spec = version.to_hub(fields).get("spec") or {}
        if kind is resource.RESOURCE_CLAIM_TEMPLATE:
            spec = spec.get("spec") or {}
        return msgspec.convert(spec, resource.ResourceClaimSpec)
    except (msgspec.ValidationError, AttributeError, TypeError) as wrong:
        raise _NotAClaim(f"this is no {fields['kind']}: {wrong}") from None


def _text(room: scheduler.Room) -> str:
    width = max((len(name) for name in room.by_node), default=0)
    lines = [f"{name:<{width}}  {_count(count)}{_mark(name, room)}" for name, count in room.by_node.items()]
    shared = ", since nodes share devices" if room.is_shared else ""
    fit = "any number fits" if room.total is None else f"{room.total} more fit"
    return "\n".join([*lines, f"{fit} in all{shared}"])


def _count(count: int | None) -> str:
    return "any number" if count is None else str(count)


def _mark(name: str, room: scheduler.Room) -> str:
    closed = f"  {room.closed[name]}: not counted" if name in room.closed else ""
    return closed + ("  at least: it takes too long to tell" if name in room.undecided else "")
