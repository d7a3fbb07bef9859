"""One resource of the API, and what can be done with it."""

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from allot.api import Object, Response, errors

from . import watch as watching
from .listing import Page, read_page
from .options import Patch, Propagation, delete_options, query_of
from .watch import WatchEvent
from .writes import Write, Writes, is_elsewhere


class Send(Protocol):
    """What a resource needs of its client."""

    def __call__(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes = b"",
        content_type: str = "application/json",
        accept: str = "application/json",
        wait_when_busy: bool = True,
    ) -> Awaitable[Response]: ...


@dataclass(frozen=True, slots=True)
class Resource:
    """Verbs over one plural in one version. A namespace of "" means all, or none for
    resources that have no namespaces."""

    _send: Send
    group: str
    version: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    # -- reading --------------------------------------------------------------------------------

    async def get(
        self, name: str, namespace: str = "", *, resource_version: str = "", subresource: str = ""
    ) -> Object:
        """A name that nothing can have is not there: references hold any text, and as part of a path
        it would name something else."""
        if not name or is_elsewhere(name):
            text = f'{self.plural} "{name}" not found'
            raise errors.NotFound(text, group=self.group, kind=self.plural, name=name)
        query = query_of(resourceVersion=resource_version)
        response = await self._send("GET", self._path(namespace, name, subresource), query)
        return _answered(response)

    async def list(
        self,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
        resource_version_match: str = "",
    ) -> Page:
        query = query_of(
            labelSelector=label_selector,
            fieldSelector=field_selector,
            limit=limit,
            resourceVersion=resource_version,
            resourceVersionMatch=resource_version_match,
        )
        if continue_token:
            query["continue"] = continue_token
        return read_page((await self._send("GET", self._path(namespace), query)).body)

    async def pages(
        self, namespace: str = "", *, label_selector: str = "", field_selector: str = "", limit: int = 500
    ) -> AsyncIterator[Page]:
        """A long list in parts, all of them as of the same revision."""
        token = ""
        while True:
            page = await self.list(
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=limit,
                continue_token=token,
            )
            yield page
            token = page.continue_token
            if not token:
                return

    async def watch(
        self,
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        bookmarks: bool = True,
        initial_events: bool = False,
        timeout_s: int = 0,
    ) -> AsyncIterator[WatchEvent]:
        """What changes after `resource_version`, until the server ends the watch.

        With `initial_events` the watch begins with everything that exists, and a bookmark
        says where that ends. Raises Gone when the revision is too old: list again.
        """
        query = query_of(
            resourceVersion=resource_version,
            labelSelector=label_selector,
            fieldSelector=field_selector,
            allowWatchBookmarks=bookmarks,
            timeoutSeconds=timeout_s,
        )
        query["watch"] = "true"
        if initial_events:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        response = await self._send("GET", self._path(namespace), query)
        if response.stream is None:
            raise errors.Internal("the server answered a watch with a document")
        async for event in watching.events(response.stream):
            yield event

    # -- writing --------------------------------------------------------------------------------

    @property
    def writes(self) -> Writes:
        """The same verbs as values, to be sent together with others."""
        return Writes(self.group, self.version, self.plural, self.namespaced)

    async def create(
        self,
        new: Object | Mapping[str, Any],
        namespace: str = "",
        *,
        field_manager: str = "",
        field_validation: str = "",
        dry_run: bool = False,
    ) -> Object:
        return await self._carry_out(
            self.writes.create(
                new,
                namespace,
                field_manager=field_manager,
                field_validation=field_validation,
                dry_run=dry_run,
            )
        )

    async def update(
        self,
        new: Object | Mapping[str, Any],
        *,
        subresource: str = "",
        field_manager: str = "",
        field_validation: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Replace the object of this name. With a resourceVersion in it, only that version."""
        return await self._carry_out(
            self.writes.update(
                new,
                subresource=subresource,
                field_manager=field_manager,
                field_validation=field_validation,
                dry_run=dry_run,
            )
        )

    async def update_status(self, new: Object | Mapping[str, Any], *, field_manager: str = "") -> Object:
        return await self.update(new, subresource="status", field_manager=field_manager)

    async def patch(
        self,
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        namespace: str = "",
        *,
        type: Patch = Patch.MERGE,
        subresource: str = "",
        field_manager: str = "",
        field_validation: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Object:
        return await self._carry_out(
            self.writes.patch(
                name,
                patch,
                namespace,
                type=type,
                subresource=subresource,
                field_manager=field_manager,
                field_validation=field_validation,
                force=force,
                dry_run=dry_run,
            )
        )

    async def apply(
        self,
        wanted: Mapping[str, Any],
        *,
        field_manager: str,
        force: bool = False,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Server-side apply: `field_manager` wants these fields to be so. Creates what is missing."""
        return await self._carry_out(
            self.writes.apply(
                wanted, field_manager=field_manager, force=force, subresource=subresource, dry_run=dry_run
            )
        )

    async def delete(
        self,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Propagation | None = None,
        grace_period_s: int | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Returns the object as it was, or a Status. `uid` and `resource_version` are preconditions."""
        return await self._carry_out(
            self.writes.delete(
                name,
                namespace,
                uid=uid,
                resource_version=resource_version,
                propagation=propagation,
                grace_period_s=grace_period_s,
                dry_run=dry_run,
            )
        )

    async def delete_collection(
        self,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        propagation: Propagation | None = None,
        grace_period_s: int | None = None,
    ) -> None:
        query = query_of(labelSelector=label_selector, fieldSelector=field_selector)
        options = delete_options("", "", propagation, grace_period_s, False)
        await self._send("DELETE", self._path(namespace), query, options)

    # -- subresources ---------------------------------------------------------------------------

    async def create_subresource(
        self, name: str, subresource: str, document: Mapping[str, Any], namespace: str = ""
    ) -> Object:
        """POST to a subresource: a binding, an eviction, a token request."""
        write = self.writes.create_subresource(name, subresource, document, namespace)
        return await self._carry_out(write, wait_when_busy=False)

    async def bind(self, name: str, namespace: str, node: str, *, uid: str = "", **more: Any) -> None:
        """Assign a pod to a node. `more` goes into the Binding's metadata (annotations)."""
        await self._carry_out(self.writes.bind(name, namespace, node, uid=uid, **more), wait_when_busy=False)

    async def evict(
        self, name: str, namespace: str, *, grace_period_s: int | None = None, uid: str = ""
    ) -> None:
        """Delete a pod, with a `uid` only that very one, if its disruption budgets allow it; TooManyRequests
        if not now."""
        eviction: dict[str, Any] = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
        }
        options: dict[str, Any] = {}
        if grace_period_s is not None:
            options["gracePeriodSeconds"] = grace_period_s
        if uid:
            options["preconditions"] = {"uid": uid}
        if options:
            eviction["deleteOptions"] = options
        await self.create_subresource(name, "eviction", eviction, namespace)

    async def token(
        self,
        name: str,
        namespace: str,
        *,
        audiences: Sequence[str] = (),
        expires_s: int | None = None,
        bound_to: Object | None = None,
    ) -> Object:
        """A token for a service account, in `status.token` of the answer; good while `bound_to` is there."""
        spec: dict[str, Any] = {"audiences": [*audiences]}
        if expires_s is not None:
            spec["expirationSeconds"] = expires_s
        if bound_to is not None:
            spec["boundObjectRef"] = {
                "apiVersion": bound_to.api_version or "v1",
                "kind": bound_to.kind or "Pod",
                "name": bound_to.name,
                "uid": bound_to.uid,
            }
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return await self.create_subresource(name, "token", request, namespace)

    async def log(
        self, name: str, namespace: str, *, container: str = "", follow: bool = False, tail_lines: int = 0
    ) -> AsyncIterator[bytes]:
        """What a container of a pod has written, and with `follow` what it goes on to write."""
        query = query_of(container=container, follow=follow, tailLines=tail_lines)
        path = self._path(namespace, name, "log")
        response = await self._send("GET", path, query, accept="*/*")
        if response.stream is None:
            yield response.body
            return
        async for chunk in response.stream:
            yield chunk

    async def scale(self, name: str, namespace: str, replicas: int) -> Object:
        patch = {"spec": {"replicas": replicas}}
        return await self.patch(name, patch, namespace, subresource="scale")

    async def _carry_out(self, write: Write, *, wait_when_busy: bool = True) -> Object:
        response = await self._send(
            write.method,
            write.path,
            write.query,
            write.body,
            write.content_type,
            wait_when_busy=wait_when_busy,
        )
        return _answered(response)

    def _path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        return self.writes.path(namespace, name, subresource)


def _answered(response: Response) -> Object:
    """From a server in the same process the object that it has, shared by all who have it."""
    return response.object or Object(response.body)
