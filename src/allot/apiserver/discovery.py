"""What is served: /api, /apis and their documents, plain and aggregated."""

import re
from collections.abc import Iterable
from typing import Any

from allot.api import Kind, Request, Response, Version, encode, errors

from .registry import Registry

Unstored = tuple[str, str, str, str, bool]
"""(group, version, plural, kind, namespaced) of what is answered and not kept."""

_AGGREGATED_VERSIONS = ("v2", "v2beta1")
_GROUP_ORDER = (
    "", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "batch", "policy",
    "rbac.authorization.k8s.io", "storage.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io",
    "coordination.k8s.io", "discovery.k8s.io", "resource.k8s.io",
)  # fmt: skip


def _aggregated_version(accept: str) -> str:
    """The first version of the aggregated form that the client asks for and we know; "" is the plain form.

    A client that knows only v2beta1 cannot read v2, and one that insists on neither can read the plain form.
    """
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        if media not in ("application/json", "*/*", "application/*"):
            continue
        said = dict(parameter.partition("=")[::2] for parameter in parameters)
        if said.get("as") is None:
            return ""
        known = said.get("g") == "apidiscovery.k8s.io" and said["as"] == "APIGroupDiscoveryList"
        if known and said.get("v") in _AGGREGATED_VERSIONS:
            return said["v"]
    if "as=" in accept:
        raise errors.NotAcceptable(f"aggregated discovery is served as {' or '.join(_AGGREGATED_VERSIONS)}")
    return ""


class Discovery:
    def __init__(
        self, registry: Registry, reviews: Iterable[Unstored], shown: Iterable[Unstored] = ()
    ) -> None:
        """`reviews` can only be created, `shown` only be read."""
        self._registry = registry
        self._unstored = [*((one, ["create"]) for one in reviews), *((one, ["get", "list"]) for one in shown)]
        self._revision = -1
        self._documents: dict[str, bytes] = {}

    def answer(self, request: Request) -> Response | None:
        """The document at this path, or None if discovery has none there."""
        if self._revision != self._registry.revision:
            self._documents, self._revision = {}, self._registry.revision
        path = request.path.rstrip("/")
        if path in ("/api", "/apis"):
            version = _aggregated_version(request.headers.get("accept", ""))
            if version:
                return self._aggregated(path, version)
        if path not in self._documents:
            document = self._plain(path)
            if document is None:
                return None
            self._documents[path] = encode(document)
        return Response(200, self._documents[path])

    def _aggregated(self, path: str, version: str) -> Response:
        key = f"{path} {version}"
        if key not in self._documents:
            groups = [""] if path == "/api" else [g for g in self._groups() if g]
            self._documents[key] = encode(
                {
                    "kind": "APIGroupDiscoveryList",
                    "apiVersion": f"apidiscovery.k8s.io/{version}",
                    "metadata": {},
                    "items": [self._aggregated_group(group) for group in groups],
                }
            )
        media = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        return Response(200, self._documents[key], content_type=media)

    def _aggregated_group(self, group: str) -> dict[str, Any]:
        versions = []
        for version in self._group_versions(group):
            resources = [_aggregated_resource(kind, version) for kind in self._kinds_in(group, version)]
            for (_, _, plural, name, namespaced), verbs in self._unstored_in(group, version):
                resources.append(
                    {
                        "resource": plural,
                        "responseKind": {"group": group, "version": version, "kind": name},
                        "scope": "Namespaced" if namespaced else "Cluster",
                        "singularResource": name.lower(),
                        "verbs": verbs,
                    }
                )
            versions.append({"version": version, "resources": resources, "freshness": "Current"})
        return {"metadata": {"name": group, "creationTimestamp": None}, "versions": versions}

    def _plain(self, path: str) -> dict[str, Any] | None:
        parts = path.strip("/").split("/")
        match parts:
            case ["api"]:
                return {
                    "kind": "APIVersions",
                    "versions": ["v1"],
                    "serverAddressByClientCIDRs": [],
                }
            case ["apis"]:
                groups = [self._group(group) for group in self._groups() if group]
                return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
            case ["api", version] if version in self._group_versions(""):
                return self._resources("", version)
            case ["apis", group] if group and group in self._groups():
                return {"kind": "APIGroup", "apiVersion": "v1", **self._group(group)}
            case ["apis", group, version] if group and version in self._group_versions(group):
                return self._resources(group, version)
            case _:
                return None

    def _groups(self) -> list[str]:
        found = {kind.group: None for kind in self._registry.kinds()}
        found.update({one[0]: None for one, _ in self._unstored})
        known = [group for group in _GROUP_ORDER if group in found]
        return known + sorted(group for group in found if group not in _GROUP_ORDER)

    def _group_versions(self, group: str) -> list[str]:
        found = {
            v.name: None for kind in self._registry.kinds() if kind.group == group for v in kind.versions
        }
        found.update({one[1]: None for one, _ in self._unstored if one[0] == group})
        return sorted(found, key=version_priority)

    def _kinds_in(self, group: str, version: str) -> list[Kind]:
        kinds = [k for k in self._registry.kinds() if k.group == group and k.version(version)]
        return sorted(kinds, key=lambda kind: kind.plural)

    def _unstored_in(self, group: str, version: str) -> list[tuple[Unstored, list[str]]]:
        return [(one, verbs) for one, verbs in self._unstored if one[:2] == (group, version)]

    def _group(self, group: str) -> dict[str, Any]:
        versions = [
            {"groupVersion": f"{group}/{version}", "version": version}
            for version in self._group_versions(group)
        ]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _resources(self, group: str, version: str) -> dict[str, Any]:
        resources = []
        for kind in self._kinds_in(group, version):
            resources.append(
                {
                    "name": kind.plural,
                    "singularName": kind.singular or kind.kind.lower(),
                    "namespaced": kind.namespaced,
                    "kind": kind.kind,
                    "verbs": list(kind.verbs),
                    **({"shortNames": list(kind.short_names)} if kind.short_names else {}),
                    **({"categories": list(kind.categories)} if kind.categories else {}),
                }
            )
            for sub in subresources(kind, version):
                same = (sub["group"], sub["version"]) == (group, version)
                resources.append(
                    {
                        "name": f"{kind.plural}/{sub['name']}",
                        "singularName": "",
                        "namespaced": kind.namespaced,
                        "kind": sub["kind"],
                        "verbs": sub["verbs"],
                        **({} if same else {"group": sub["group"], "version": sub["version"]}),
                    }
                )
        for (_, _, plural, name, namespaced), verbs in self._unstored_in(group, version):
            resources.append(
                {
                    "name": plural,
                    "singularName": name.lower(),
                    "namespaced": namespaced,
                    "kind": name,
                    "verbs": verbs,
                }
            )
        shown = f"{group}/{version}" if group else version
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": shown, "resources": resources}


_OTHER_SUBRESOURCES: dict[str, tuple[str, str, str, list[str]]] = {
    "attach": ("", "v1", "PodAttachOptions", ["create", "get"]),
    "binding": ("", "v1", "Binding", ["create"]),
    "eviction": ("policy", "v1", "Eviction", ["create"]),
    "exec": ("", "v1", "PodExecOptions", ["create", "get"]),
    "portforward": ("", "v1", "PodPortForwardOptions", ["create", "get"]),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", ["create"]),
}


_OWN_VERBS = {"log": ["get"], "finalize": ["update"]}


def subresources(kind: Kind, version: str) -> list[dict[str, Any]]:
    """Each with its name, the kind that it speaks, and its verbs."""
    own = {"group": kind.group, "version": version, "kind": kind.kind}
    found: list[dict[str, Any]] = []
    for name in kind.other_subresources:
        if name in _OTHER_SUBRESOURCES:
            group, group_version, speaks, verbs = _OTHER_SUBRESOURCES[name]
            found.append(
                {"name": name, "group": group, "version": group_version, "kind": speaks, "verbs": verbs}
            )
        else:
            found.append({"name": name, **own, "verbs": _OWN_VERBS.get(name, ["get", "patch", "update"])})
    verbs = ["get", "patch", "update"]
    if kind.scale is not None:
        found.append(
            {"name": "scale", "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": verbs}
        )
    if kind.has_status:
        found.append({"name": "status", **own, "verbs": verbs})
    return sorted(found, key=lambda sub: str(sub["name"]))


def _aggregated_resource(kind: Kind, version: str) -> dict[str, Any]:
    subs = [
        {
            "subresource": sub["name"],
            "responseKind": {"group": sub["group"], "version": sub["version"], "kind": sub["kind"]},
            "verbs": sub["verbs"],
        }
        for sub in subresources(kind, version)
    ]
    return {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular or kind.kind.lower(),
        "verbs": list(kind.verbs),
        **({"shortNames": list(kind.short_names)} if kind.short_names else {}),
        **({"categories": list(kind.categories)} if kind.categories else {}),
        **({"subresources": subs} if subs else {}),
    }


def version_priority(version: Version | str) -> tuple[int, int, int, str]:
    """Sorts v2 before v1, v1 before v1beta2, betas before alphas, anything else last."""
    name = version if isinstance(version, str) else version.name
    match = re.fullmatch(r"v(\d{1,6})(?:(alpha|beta)(\d{1,6}))?", name)
    if match is None:
        return (3, 0, 0, name)
    major, stage, minor = match.groups()
    return ({None: 0, "beta": 1, "alpha": 2}[stage], -int(major), -int(minor or 0), name)
