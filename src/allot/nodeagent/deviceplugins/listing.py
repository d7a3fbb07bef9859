"""Compute resources of the node in an object beside it, where the server keeps none in the Node (KEP-14).

    the server drops `status.computeResources` ──► NodeComputeResources of the node's name
    it does not serve those either, or does not let us ──► nothing is listed, and devices are counted

What it promises
    LIST1  It is written when it says something else than what is exported, and not otherwise; whoever changes
           or deletes it finds it restored.
    LIST2  When nothing is exported it is not there: an agent that begins anew takes away what an earlier one
           has left. When the Node goes, whoever collects garbage takes it.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from allot.api import Object, compute, errors
from allot.client import Client
from allot.informers import Informer, Informers, ResourceId
from allot.node import owner_reference

log = logging.getLogger(__name__)

Fields = dict[str, Any]


class NotListed(Exception):
    """The server takes no such object; the message says why."""


class Listing:
    def __init__(self, name: str, client: Client, informers: Informers, changed: Callable[[], None]) -> None:
        limits = compute.limits
        self._what = ResourceId(
            limits.GROUP,
            limits.VERSION,
            limits.LISTS,
            namespaced=False,
            field_selector=f"metadata.name={name}",
        )
        self._name, self._informers, self._changed = name, informers, changed
        self._lists = client.resource(limits.GROUP, limits.VERSION, limits.LISTS, namespaced=False)
        self._shown: Informer | None = None
        self._written = "0"
        self._is_given_up = False

    @property
    def is_begun(self) -> bool:
        return self._shown is not None and not self._is_given_up

    async def look(self) -> None:
        """Begins where an earlier agent has left an object. Raises ApiError."""
        with suppress(NotListed):
            if await self._is_there():
                self._follow()

    async def begin(self) -> None:
        """Raises NotListed, and ApiError."""
        if self._shown is None and not self._is_given_up:
            await self._is_there()
            self._follow()

    def give_up(self) -> None:
        self._is_given_up = True

    def end(self) -> None:
        if self._shown is not None:
            self._informers.leave(self._shown)

    async def say(self, node: Object, exported: Sequence[Fields]) -> None:
        """LIST1, LIST2. Raises NotListed, and ApiError."""
        shown = self._shown if not self._is_given_up else None
        if shown is None or not shown.synced or not shown.has_heard(self._written):
            return  # what is on its way will be heard
        there = shown.cache.get(self._name)
        wanted = compute.listed.body(owner_reference(node), exported)
        try:
            if there is None and exported:
                self._written = (await self._lists.create(wanted)).resource_version
            elif there is not None and not exported:
                with suppress(errors.NotFound):
                    await self._lists.delete(self._name, uid=there.uid)
            elif there is not None and not _says(there, wanted):
                change = {**wanted, "metadata": {"uid": there.uid, **wanted["metadata"]}}
                self._written = (await self._lists.patch(self._name, change)).resource_version
        except errors.Forbidden as refused:
            raise NotListed(str(refused)) from None

    async def _is_there(self) -> bool:
        """Raises NotListed, and ApiError."""
        try:
            await self._lists.get(self._name)
        except errors.NotFound as missing:
            if not missing.name:  # nothing of this kind, whatever its name
                raise NotListed(str(missing)) from None
            return False
        except errors.Forbidden as refused:
            raise NotListed(str(refused)) from None
        return True

    def _follow(self) -> None:
        self._shown = self._informers.use(self._what)
        self._shown.handle(lambda change: self._changed())


def _says(there: Object, wanted: Fields) -> bool:
    fields = there.fields
    owners = (fields.get("metadata") or {}).get("ownerReferences")
    own = [_filled(one) for one in fields.get("computeResources") or ()]
    return bool(own == wanted["computeResources"] and owners == wanted["metadata"]["ownerReferences"])


def _filled(entry: Fields) -> Fields:
    return {key: value for key, value in entry.items() if value}
