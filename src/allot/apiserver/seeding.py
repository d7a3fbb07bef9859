"""What must be there before anybody can ask for anything: namespaces, roles, priority classes.

Objects that exist are left alone, except roles and bindings that say that they
follow the defaults (`autoupdate`): these get what they lack.
"""

import asyncio
from collections.abc import Iterable

from allot.api import Fields, Request, User, encode, errors
from allot.base import Clock

from .registry import Registry
from .requests.call import Call
from .requests.negotiate import WHOLE
from .requests.render import Renderer
from .requests.target import Target
from .security.bootstrap import reconciled
from .storing.repository import Repository
from .writing.writer import Writer

SERVER = User("system:apiserver")

RBAC = "rbac.authorization.k8s.io"
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


def namespaces() -> list[Fields]:
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES]


def accounts() -> list[Fields]:
    """Namespaces are born with theirs; those of a store that is older than this rule are not."""
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        for name in NAMESPACES
    ]


def priority_classes() -> list[Fields]:
    """What the system's own pods are given, so that nobody preempts them."""
    classes = {
        "system-cluster-critical": (2_000_000_000, "for pods that the cluster needs, on whichever node"),
        "system-node-critical": (2_000_001_000, "for pods that their node needs"),
    }
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": f"Used {use}.",
        }
        for name, (value, use) in classes.items()
    ]


class Seeder:
    def __init__(self, registry: Registry, repository: Repository, writer: Writer, clock: Clock) -> None:
        self._registry = registry
        self._repository = repository
        self._writer = writer
        self._clock = clock

    async def plant(self, objects: Iterable[Fields]) -> None:
        await asyncio.gather(*(self._plant(fields) for fields in objects))

    async def _plant(self, fields: Fields) -> None:
        group, _, version = fields["apiVersion"].rpartition("/")
        kind = self._registry.by_kind(group, fields["kind"])
        served = self._registry.served(group, version, kind.plural) if kind else None
        if kind is None or served is None:
            raise ValueError(f"{fields['apiVersion']} {fields['kind']} is not served")
        metadata = fields["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace", "")
        try:
            found = await self._repository.find(kind, namespace, name)
        except errors.Internal:
            return  # it is there and cannot be read: /readyz names it, and nobody writes over it
        verb = "create"
        if found.object is not None:
            wanted = reconciled(found.object.fresh(), fields) if group == RBAC else None
            if wanted is None:
                return
            fields, verb = wanted, "update"
        target = Target(
            group, version, kind.plural, namespace, name if verb == "update" else "", "", verb, served
        )
        request = Request("POST", "", {"fieldManager": "apiserver"}, {}, encode(fields))
        call = Call(target, served, request, SERVER, Renderer(served, WHOLE, self._clock), kind, SERVER)
        try:
            await (self._writer.create(call) if verb == "create" else self._writer.update(call))
        except errors.Conflict:
            return  # another server on the same store was faster
