"""N2: has the node let go of a claim's devices?

Where nodes publish what they have prepared (`views.PREPARED_PLURAL`), a claim may be
deallocated once no node lists it, or the node that does is gone. Where they do not (a
real Kubernetes), upstream's rule holds: a pod that is done has been unprepared, because
the kubelet does that before it reports the end.

The cache of prepared claims finds who lists a claim at no cost. It may be behind, though,
and the harm is a device in use twice; so of a claim that no node seems to hold the server has
the last word, about the nodes that its consumers ran on. Where it has transactions, that they
say what the cache shows is expected in the very write that lets go; elsewhere it is asked first.
"""

from collections.abc import Collection, Iterable

from allot.api import errors, resource
from allot.client import Client, Write
from allot.informers import Informer

from .views import PREPARED_GROUP, PREPARED_PLURAL, PREPARED_VERSION, prepared_uids

PREPARED_INDEX = "prepared claims"


class Releases:
    def __init__(self, client: Client, prepared: Informer, nodes: Informer) -> None:
        self._prepared = prepared
        self._nodes = nodes
        self._ask_prepared = client.resource(
            PREPARED_GROUP, PREPARED_VERSION, PREPARED_PLURAL, namespaced=False
        )
        self._ask_nodes = client.resource("", "v1", "nodes", namespaced=False)
        self._holders = prepared.cache.index(PREPARED_INDEX, prepared_uids)

    async def released(self, claim: resource.ResourceClaim, ran_on: Collection[str]) -> bool:
        """`ran_on` names the nodes of the consumers that leave, as far as they are known."""
        if not self._prepared.served:
            return True
        uid = claim.metadata.uid
        for node in self._suspects(claim, ran_on):
            if await self._holds(node, uid) and await self._exists(node):
                return False
        return True

    def expected(self, claim: resource.ResourceClaim, ran_on: Collection[str]) -> list[Write] | None:
        """What makes `released` true, for a transaction. None: a node seems to hold it, so ask."""
        if not self._prepared.served:
            return []
        uid, found = claim.metadata.uid, list[Write]()
        for node in self._suspects(claim, ran_on):
            listed = self._prepared.cache.get(node)
            if listed is not None and uid in prepared_uids(listed):
                return None
            version = listed.resource_version if listed is not None else ""
            found.append(self._ask_prepared.writes.expect(node, version))
        return found

    def _suspects(self, claim: resource.ResourceClaim, ran_on: Collection[str]) -> Iterable[str]:
        suspects = dict.fromkeys(one.name for one in self._holders[claim.metadata.uid])
        suspects.update(dict.fromkeys(name for name in ran_on if name))
        suspects.update(dict.fromkeys(nodes_of(claim.status.allocation)))
        return suspects

    async def _holds(self, node: str, uid: str) -> bool:
        try:
            return uid in prepared_uids(await self._ask_prepared.get(node))
        except errors.NotFound:
            return False

    async def _exists(self, node: str) -> bool:
        if self._nodes.cache.get(node) is not None:
            return True  # if it is gone by now, its end will be told, and the claim looked at again
        try:
            await self._ask_nodes.get(node)
        except errors.NotFound:
            return False
        return True


def nodes_of(allocation: resource.AllocationResult | None) -> Iterable[str]:
    """The nodes that an allocation names, where it names them."""
    selector = allocation.node_selector if allocation is not None else None
    for term in selector.node_selector_terms if selector is not None else ():
        for field in term.match_fields:
            if field.key == "metadata.name" and field.operator == "In":
                yield from field.values
