"""The objects that classes and claims refer to as parameters, read with the driver's own rights.

A reference has group, kind and name, and no version: what the server serves of the kind is found by
discovery, so any object will do, custom ones too. Nothing is kept but what discovery said: parameters
are read when a claim is to be judged, so that what was deleted is not used and what came again is.
"""

from allot.api import Object, classic, errors, resource
from allot.base import Clock
from allot.client import Client
from allot.informers import Catalogue, Served, discover

from .values import NotUsable

LOOK_AGAIN_S = 1.0
"""Between two looks for a kind that is not served."""

Kinds = frozenset[str] | None
"""`Kind.group` of each kind that a driver takes (`ConfigMap` in the core group); None: any."""


Reference = classic.ResourceClassParametersReference | resource.ResourceClaimParametersReference


class Parameters:
    def __init__(
        self, client: Client, clock: Clock, of_classes: Kinds = None, of_claims: Kinds = None
    ) -> None:
        self._client, self._clock = client, clock
        self._of_classes, self._of_claims = of_classes, of_claims
        self._catalogue = Catalogue(())
        self._looked_at_s = float("-inf")

    async def of_class(
        self, name: str, reference: classic.ResourceClassParametersReference | None
    ) -> Object | None:
        """Raises NotUsable, or what the API answered where it cannot be asked."""
        if reference is None:
            return None
        where = f"class {name}: parametersRef"
        served = await self._served(where, reference, self._of_classes)
        if served.what.namespaced and not reference.namespace:
            raise NotUsable(f"{where}.namespace: {reference.kind} objects are in namespaces; name one")
        if reference.namespace and not served.what.namespaced:
            raise NotUsable(f"{where}.namespace: {reference.kind} objects are in no namespace; leave it out")
        return await self._read(where, served, reference.name, reference.namespace)

    async def of_claim(
        self, name: str, namespace: str, reference: resource.ResourceClaimParametersReference | None
    ) -> Object | None:
        """In the claim's own namespace, and nowhere else."""
        if reference is None:
            return None
        where = f"claim {namespace}/{name}: spec.parametersRef"
        served = await self._served(where, reference, self._of_claims)
        if not served.what.namespaced:
            raise NotUsable(
                f"{where}: {reference.kind} objects are in no namespace, and a claim's must be in its own"
            )
        return await self._read(where, served, reference.name, namespace)

    async def _served(self, where: str, reference: Reference, taken: Kinds) -> Served:
        group, kind = reference.api_group, reference.kind
        called = f"{kind}.{group}" if group else kind
        if taken is not None and called not in taken:
            raise NotUsable(f"{where}: this driver takes {_listed(taken)} here, and not {called}")
        served = self._catalogue.of_kind(f"{group}/", kind)
        if served is None and self._clock.monotonic_s() - self._looked_at_s >= LOOK_AGAIN_S:
            self._looked_at_s = self._clock.monotonic_s()
            self._catalogue = await discover(self._client)
            served = self._catalogue.of_kind(f"{group}/", kind)
        if served is None:
            raise NotUsable(f"{where}: the server has no kind {called}")
        return served

    async def _read(self, where: str, served: Served, name: str, namespace: str) -> Object:
        what = served.what
        objects = self._client.resource(what.group, what.version, what.plural, namespaced=what.namespaced)
        within = f" in namespace {namespace}" if namespace else ""
        try:
            return await objects.get(name, namespace)
        except errors.NotFound:
            self._catalogue = Catalogue(())  # the kind may be served otherwise by now
            raise NotUsable(f"{where}: there is no {served.kind} {name}{within}") from None
        except errors.Forbidden as refused:
            raise NotUsable(
                f"{where}: the driver may not read {served.kind} {name}{within}: {refused}"
            ) from None


def _listed(kinds: frozenset[str]) -> str:
    return ", ".join(sorted(kinds)) or "no parameters"
