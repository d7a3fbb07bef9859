"""What a server serves, as it says itself: the resources that components follow at run time.

Two requests, in the aggregated form that Kubernetes has had since 1.27. Of each group a
resource is named once, in the first version that has it: versions come in order of
preference, and all of them show the same objects.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from allot.client import Client

from .informer import ResourceId

_ACCEPT = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    for version in ("v2", "v2beta1")
)


@dataclass(frozen=True, slots=True)
class Served:
    what: ResourceId
    kind: str
    verbs: frozenset[str]
    versions: frozenset[str] = frozenset()  # all in which it is served

    def can(self, *verbs: str) -> bool:
        return self.verbs.issuperset(verbs)


class Catalogue:
    """What was served when the server was asked."""

    def __init__(self, served: Iterable[Served], unavailable: Iterable[str] = ()) -> None:
        self.served = tuple(served)
        self.unavailable = tuple(unavailable)  # group/version that somebody else serves, and that is away
        self._by_kind = {(one.what.group, one.kind): one for one in self.served}

    def of_kind(self, api_version: str, kind: str) -> Served | None:
        """The resource of a kind, whatever version of its group is named."""
        return self._by_kind.get((api_version.rpartition("/")[0], kind))


async def discover(client: Client) -> Catalogue:
    served: list[Served] = []
    away: list[str] = []
    for path in ("/api", "/apis"):
        response = await client.send("GET", path, {}, accept=_ACCEPT)
        for group in msgspec.json.decode(response.body).get("items") or ():
            served += _group(group, away)
    return Catalogue(served, away)


async def is_served(client: Client, what: ResourceId) -> bool:
    """For whoever was refused: a server says so of what it does not have too."""
    every = (await discover(client)).served
    return any(
        (one.what.group, one.what.plural) == (what.group, what.plural) and what.version in one.versions
        for one in every
    )


def _group(group: Mapping[str, Any], away: list[str]) -> list[Served]:
    name = (group.get("metadata") or {}).get("name") or ""
    found: dict[str, Served] = {}
    versions: dict[str, set[str]] = {}
    for version in group.get("versions") or ():
        if version.get("freshness") == "Stale":
            away.append(f"{name}/{version['version']}")
        for resource in version.get("resources") or ():
            plural, kind = resource["resource"], (resource.get("responseKind") or {}).get("kind") or ""
            what = ResourceId(name, version["version"], plural, resource.get("scope") == "Namespaced")
            found.setdefault(plural, Served(what, kind, frozenset(resource.get("verbs") or ())))
            versions.setdefault(plural, set()).add(version["version"])
    return [replace(one, versions=frozenset(versions[plural])) for plural, one in found.items()]
