"""Says which claims a node has prepared, before it prepares and after it has let go (N2).

What several pods of a node change at one moment is one write. Whoever waits for the node's word is
called when the server has accepted it.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from allot.api import Object, age, errors, kinds
from allot.base import require
from allot.client import Resource
from allot.informers import Change, Deleted, Reconciler, owner_uids

from .claims import ClaimRef
from .holding import Holding
from .hosts import Heard, Hosts, owner_reference

Fields = dict[str, Any]


class PreparedLoop:
    def __init__(
        self,
        hosts: Hosts,
        heard: Heard,
        take_over: Callable[[str], Awaitable[None]],
        spoken: Callable[[str], None],
        *,
        publishes: bool = True,
    ) -> None:
        """`take_over` finds out what a node has, before it says anything (N6); `spoken` is called
        with the uid of each pod that waited for its node's word.

        Without `publishes` nodes keep their lists to themselves, as on servers that have none.
        """
        self._hosts = hosts
        self._heard = heard
        self._take_over = take_over
        self._spoken = spoken
        self._publishes = publishes and heard.prepared is not None
        self._since = age.micro_timestamp(hosts.clock.now())
        self._versions: dict[str, str] = {}  # node -> of its list, as we last wrote it
        self._holding: Holding[str] = Holding()
        self.saying: Reconciler[str] = Reconciler(
            f"{hosts.name}_prepared", self._say, hosts.clock, hosts.telemetry
        )

    # -- for the pods of a node -----------------------------------------------------------------

    def hold(self, node: str, pod: str, claims: Iterable[ClaimRef]) -> None:
        """To be listed as prepared, for this pod's sake, until it is released."""
        self._holding.hold(node, pod, claims)

    def release(self, node: str, pod: str) -> None:
        self._holding.release(node, pod)
        if self._holding.is_behind(node):
            self.saying.add(node)

    def says(self, node: str, claims: Iterable[ClaimRef]) -> bool:
        return self._holding.says(node, claims)

    def lacks(self, node: str, claims: Iterable[ClaimRef]) -> bool:
        return self._holding.lacks(node, claims)

    def call_when_spoken(self, node: str, pod: str) -> None:
        """PREP3."""
        self._holding.wait(node, pod)
        self.saying.add(node)

    def listed(self, node: str) -> frozenset[str]:
        """The uids on a node's list as last heard, whoever wrote it."""
        found = self._heard.prepared.cache.get(node) if self._heard.prepared is not None else None
        return _uids(found) if found is not None else frozenset()

    # -- hearing --------------------------------------------------------------------------------

    def on_prepared(self, change: Change) -> None:
        """A list that is not our last word: of an earlier process, or written over ours."""
        listed = change.object
        if not self._hosts.may_be_ours(listed.name):
            return
        known = self._versions.get(listed.name, "0")
        if not isinstance(change, Deleted) and int(listed.resource_version) <= int(known):
            return
        is_right = _uids(listed) == self._holding.wanted_uids(listed.name)
        if isinstance(change, Deleted) or not is_right or listed.name not in self._holding.speakers:
            self._holding.doubt(listed.name)
            self.saying.add(listed.name)

    def forget(self, node: str) -> None:
        """The node is gone, and its word with it."""
        self._holding.forget(node)
        self._versions.pop(node, None)

    # -- saying ---------------------------------------------------------------------------------

    async def _say(self, name: str) -> None:
        node = self._heard.node(name)
        if node is None or not self._hosts.is_ours(node):
            return
        await self._take_over(name)
        wanted = self._holding.wanted(name)
        if self._publishes and self._holding.is_behind(name):
            await self._publish(node, [claim._asdict() for claim in wanted])
        for pod in self._holding.said(name, [claim.uid for claim in wanted]):
            self._spoken(pod)
        require(self._holding.says(name, wanted), "PREP2: what was accepted is what is said")
        if self._holding.is_behind(name):  # a pod let go, or came, while the word was on its way
            self.saying.add(name)

    async def _publish(self, node: Object, claims: list[Fields]) -> None:
        """Each write follows the one before it, so that none comes late and overtakes another.

        After an answer that did not come nobody knows which one was the last: then the
        server is asked. `since` differs between processes, so that the first word of each one
        moves the list on, even if it says the same.
        """
        prepared = self._hosts.client(node.name).of(kinds.PREPARED_CLAIMS)
        version = self._versions.pop(node.name, "") or await _version(prepared, node)
        status = {"since": self._since, "claims": claims}
        if version:
            patch = {"metadata": {"resourceVersion": version}, "status": status}
            written = await prepared.patch(node.name, patch, subresource="status")
        else:
            metadata = {"name": node.name, "ownerReferences": [owner_reference(node)]}
            body = {"apiVersion": prepared.api_version, "kind": "PreparedClaims", "metadata": metadata}
            written = await prepared.create({**body, "status": status})
        self._versions[node.name] = written.resource_version


async def _version(prepared: Resource, node: Object) -> str:
    """Of the list that is there, which from now on is this node's. One of an earlier node of that name would
    be removed with it, whatever this one has said there."""
    try:
        found = await prepared.get(node.name)
    except errors.NotFound:
        return ""
    if node.uid in owner_uids(found):
        return found.resource_version
    metadata = {"resourceVersion": found.resource_version, "ownerReferences": [owner_reference(node)]}
    return (await prepared.patch(node.name, {"metadata": metadata})).resource_version


def _uids(prepared: Object) -> frozenset[str]:
    claims = (prepared.fields.get("status") or {}).get("claims") or ()
    return frozenset(one["uid"] for one in claims)
