"""What a request path names: a resource, or something else.

/api/v1/pods                                 every namespace
/api/v1/namespaces/default/pods/web/status   one object's subresource
/apis/resource.k8s.io/v1/deviceclasses/gpu
/healthz                                     not a resource
"""

import msgspec

from allot.api import Action, Request, errors

from ..registry import Registry, Served

_NAMESPACE_SUBRESOURCES = {"status", "finalize"}

_VERBS = {
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
    "GET": "get",
    "HEAD": "get",
}


class Target(msgspec.Struct, frozen=True):
    group: str
    version: str
    plural: str
    namespace: str
    name: str
    subresource: str
    verb: str
    served: Served | None  # None: a path of the right form that names nothing we store
    beside: str = ""  # a subresource that is written with the object itself: "status", in transactions

    def action(self, field_selector: str = "") -> Action:
        return Action(
            self.verb,
            self.group,
            self.plural,
            self.subresource,
            self.namespace,
            self.name,
            self.version,
            field_selector=field_selector,
        )


def find_target(request: Request, registry: Registry) -> Target | None:
    """The resource that the path names, or None if it is not a resource path."""
    parts = request.path.strip("/").split("/")
    if "" in parts:
        parts = [part for part in parts if part]
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace, within = "", False
    if (
        rest[0] == "namespaces"
        and len(rest) >= 3
        and not (len(rest) == 3 and rest[2] in _NAMESPACE_SUBRESOURCES)
    ):
        namespace, rest, within = rest[1], rest[2:], True
    elif rest[0] == "namespaces" and len(rest) >= 2 and group == "":
        namespace = rest[1]  # upstream's request info: a namespace lies in itself
    plural = rest[0]
    name = rest[1] if len(rest) > 1 else ""
    subresource = "/".join(rest[2:])
    served = registry.served(group, version, plural)
    verb = _verb(request, name, subresource)
    if served is not None and within and not served.kind.namespaced:
        # Not even a namespace: rights within one would otherwise reach the others.
        served = None
    return Target(group, version, plural, namespace, name, subresource, verb, served)


def _verb(request: Request, name: str, subresource: str) -> str:
    verb = _VERBS.get(request.method)
    if verb is None:
        raise errors.MethodNotAllowed("the server does not allow this method on the requested resource")
    if not name and verb == "get":
        return "watch" if request.asks_for("watch") else "list"
    if not name and verb == "delete":
        return "deletecollection"
    return verb
