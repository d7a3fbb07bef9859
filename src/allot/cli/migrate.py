"""allot migrate: from one generation to the next, in a cluster that runs.

    claims    classic claims and templates of a namespace become structured ones of the same names
    classes   workloads that ask for a raw resource ask for a class over it (KEP-14)
    plugins   a node goes from a device plugin to a DRA driver

With --dry-run each of them lists what would change, and which pods change path, and writes nothing. Exit
status 0: done, or nothing to do; 1: refused, or something is left that cannot be done; 3 (plugins): somebody
else has to do something first, then run it again.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from allot.api import Fields, Gates, Object, compute, errors
from allot.client import Client, Patch, Resource
from allot.generations import Replacement, nodewise, rawnames, replacing
from allot.informers import is_served
from allot.scheduler import COMPUTE_LISTS

from . import asking, convert, flags

DONE: Final = 0
REFUSED: Final = 1
WAITS: Final = 3
_WORKLOADS: Final = (
    ("apps", "v1", "deployments"),
    ("apps", "v1", "statefulsets"),
    ("apps", "v1", "daemonsets"),
    ("apps", "v1", "replicasets"),
    ("batch", "v1", "jobs"),
    ("batch", "v1", "cronjobs"),
    ("", "v1", "replicationcontrollers"),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    claims = what.add_parser("claims", help="classic claims and templates become structured ones")
    convert.add_mapping(claims)
    classes = what.add_parser("classes", help="workloads ask for a class and not for a raw resource")
    classes.add_argument("--resource", required=True, metavar="RAW", help="nvidia.com/gpu, say")
    classes.add_argument("--to", required=True, metavar="CLASS", help="the class that they ask for")
    classes.add_argument("workloads", nargs="*", metavar="NAME", help="these alone; default: all of them")
    plugins = what.add_parser("plugins", help="a node goes from a device plugin to a DRA driver")
    plugins.add_argument("--resource", required=True, metavar="RAW", help="that the plugin counts")
    plugins.add_argument("--node", required=True, type=flags.object_name)
    for one in (claims, classes, plugins):
        one.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")
        asking.reaching(one)


def run(options: argparse.Namespace) -> int:
    question = {"claims": _claims, "classes": _classes, "plugins": _plugins}[options.what]

    async def asked(client: Client, gates: Gates, namespace: str) -> int:
        try:
            return await question(client, options, namespace)
        except convert.Unreadable as wrong:
            print(f"allot migrate: {wrong}", file=sys.stderr)
            return convert.UNREADABLE

    return asking.run("migrate", options, asked)


# -- claims


async def _claims(client: Client, options: argparse.Namespace, namespace: str) -> int:
    mapping = convert.mapping(options)
    things: list[Fields] = []
    for plural in ("resourceclaims", "resourceclaimtemplates"):
        things += await _listed(client.resource("resource.k8s.io", "v1alpha1", plural), namespace)
    found = replacing(things, await _users(client, namespace), mapping)
    for words in (*found.notes, *found.in_use, *(f"cannot be converted: {one}" for one in found.impossible)):
        print(f"allot migrate: {words}", file=sys.stderr)
    for one in found.replacements:
        path = f"; {', '.join(one.users)}: new pods change path" if one.users else ""
        print(f"{one.plural}/{one.name}: replaced by a structured one{path}")
        if not options.dry_run:
            await _replace(client, one, namespace)
    return REFUSED if found.impossible else DONE


async def _replace(client: Client, one: Replacement, namespace: str) -> None:
    """It is tried first whether the server takes the new one, under a name of its own. Where it does not take
    it in the end, the old one is put back. Raises ApiError."""
    resource = client.resource("resource.k8s.io", "v1", one.plural)
    metadata = {**one.manifest["metadata"], "generateName": f"{one.name[:200]}-"}
    del metadata["name"]
    await resource.create({**one.manifest, "metadata": metadata}, namespace, dry_run=True)
    await resource.delete(one.name, namespace, uid=one.uid, resource_version=one.version)
    try:
        await resource.create(one.manifest, namespace)
    except errors.ApiError:
        old = client.resource("resource.k8s.io", "v1alpha1", one.plural)
        await old.create(one.before, namespace)
        print(f"allot migrate: {one.plural}/{one.name} is as it was: it was put back", file=sys.stderr)
        raise


# -- classes


async def _classes(client: Client, options: argparse.Namespace, namespace: str) -> int:
    limits = compute.limits
    classes = client.resource(limits.GROUP, limits.VERSION, "resourceclasses", namespaced=False)
    pods = await _listed(client.resource("", "v1", "pods"), namespace)
    around = rawnames.Around(
        tuple(await _workloads(client, namespace)),
        tuple(pods),
        tuple(await _listed(client.resource("", "v1", "resourcequotas"), namespace)),
        await _nodes(client),
    )
    found = rawnames.plan(options.resource, options.to, await _listed(classes), around, options.workloads)
    if found.refused:
        print(f"allot migrate: {found.refused}", file=sys.stderr)
        return REFUSED
    for words in (*found.notes, *found.stay):
        print(f"allot migrate: {words}", file=sys.stderr)
    for move in found.moves:
        pods_named = f" change path: {', '.join(move.pods)}" if move.pods else " that come"
        print(f"{move.kind} {move.name}: asks for {options.to}; pods{pods_named}")
        if not options.dry_run:
            plural = rawnames.CHANGEABLE[move.kind]
            group = next(group for group, _, one in _WORKLOADS if one == plural)
            resource = client.resource(group, "v1", plural)
            await resource.patch(move.name, move.patch, namespace, type=Patch.STRATEGIC)
    return DONE


# -- plugins


async def _plugins(client: Client, options: argparse.Namespace, namespace: str) -> int:
    nodes = client.resource("", "v1", "nodes", namespaced=False)
    pods, selector = client.resource("", "v1", "pods"), f"spec.nodeName={options.node}"
    slices = client.resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)
    classes = client.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
    (node,) = _with_lists([await nodes.get(options.node)], await _lists(client))
    around = nodewise.Around(
        node,
        tuple(await _listed(pods, selector=selector)),
        tuple(await _listed(slices, selector=selector)),
        tuple(await _listed(classes)),
        await _compute_classes(client),
    )
    due = nodewise.due(options.resource, around)
    if due.refused:
        print(f"allot migrate: {due.refused}", file=sys.stderr)
        return REFUSED
    if due.close:
        print(f"node {options.node}: closed for new pods")
        await _unless(options, nodes.patch, options.node, _closing(options.resource, is_closed=True))
    for pod, name in zip(due.evict, nodewise.named(due.evict), strict=True):
        print(f"pod {name}: changes path; evicted, {nodewise.next_one(pod)}")
        await _unless(options, pods.evict, pod["metadata"]["name"], pod["metadata"]["namespace"])
    if due.open:
        print(f"node {options.node}: open for new pods")
        await _unless(options, nodes.patch, options.node, _closing(None, is_closed=False))
    if due.done:
        print(f"node {options.node}: a driver serves {options.resource}")
        return DONE
    print(due.waits_for or "run it again when these are gone")
    return WAITS


def _closing(resource: str | None, is_closed: bool) -> Fields:
    return {
        "metadata": {"annotations": {nodewise.MOVING: resource}},
        "spec": {"unschedulable": is_closed or None},
    }


async def _unless(options: argparse.Namespace, deed: Callable[..., Any], *arguments: Any) -> None:
    if not options.dry_run:
        await deed(*arguments)


# -- reading


async def _users(client: Client, namespace: str) -> list[Fields]:
    pods = await _listed(client.resource("", "v1", "pods"), namespace)
    return [*pods, *await _workloads(client, namespace)]


async def _compute_classes(client: Client) -> tuple[Fields, ...]:
    """None where the server has no such thing."""
    limits = compute.limits
    classes = client.resource(limits.GROUP, limits.VERSION, "resourceclasses", namespaced=False)
    try:
        return tuple(await _listed(classes))
    except errors.NotFound:
        return ()


async def _nodes(client: Client) -> tuple[Fields, ...]:
    nodes = client.resource("", "v1", "nodes", namespaced=False)
    return _with_lists((await nodes.list()).objects, await _lists(client))


async def _lists(client: Client) -> dict[str, Object]:
    """What nodes have of compute resources, where that is said beside them; nothing where it is not."""
    what = COMPUTE_LISTS
    lists = client.resource(what.group, what.version, what.plural, namespaced=False)
    try:
        return {one.name: one for one in (await lists.list()).objects}
    except errors.NotFound:
        return {}
    except errors.Forbidden:
        if await is_served(client, what):
            raise
        return {}


def _with_lists(nodes: Sequence[Object], lists: Mapping[str, Object]) -> tuple[Fields, ...]:
    return tuple(dict(compute.listed.with_listed(one, lists.get(one.name)).fields) for one in nodes)


async def _workloads(client: Client, namespace: str) -> list[Fields]:
    found: list[Fields] = []
    for group, version, plural in _WORKLOADS:
        found += await _listed(client.resource(group, version, plural), namespace)
    return found


async def _listed(resource: Resource, namespace: str = "", selector: str = "") -> list[Fields]:
    listed: Sequence[Object] = (await resource.list(namespace, field_selector=selector)).objects
    return [dict(one.fields) for one in listed]
