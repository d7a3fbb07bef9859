"""What is asked for next: by whom, with which verb, in which version and encoding."""

import copy
import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

from .mutating import mutated
from .requests import PATCHES, Question, Sent, Target, served
from .sound import sound
from .values import Values

Fields = dict[str, Any]

NAMESPACES = ("team-a", "team-b")
NAMES = tuple(f"s-{number}" for number in range(12))
ADMIN, EDITOR, NODE, DRIVER = ACTORS = ("admin", "editor", "node", "driver")

_AUTHORIZATION = "/apis/authorization.k8s.io/v1"
_TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
_READS = (
    "limit=2", "resourceVersion=0", "labelSelector=app", "fieldSelector=metadata.name%3Dx",
    "watch=1&timeoutSeconds=1",
)  # fmt: skip
_OFTEN = (
    "pods",
    "resourceclaims",
    "resourceslices",
    "deployments",
    "replicasets",
    "jobs",
    "resourceclaimtemplates",
)
_NAMED_AFTER_NODE = ("nodes", "csinodes", "leases", "preparedclaims")
"""One of each a node, of its name."""
_NODES = (*_NAMED_AFTER_NODE, "pods", "events", "resourceslices")
_NOT_EDITED = (
    "roles", "rolebindings", "limitranges", "resourcequotas", "csistoragecapacities", "controllerrevisions",
    "things", "podtemplates", "endpoints", "endpointslices", "events",
)  # fmt: skip
"""Kinds that `edit` does not reach; tried now and then all the same."""
_NAMED_BY = {
    "resourceclaims": "resourceClaimName",
    "resourceclaimtemplates": "resourceClaimTemplateName",
    "deviceclasses": "deviceClassName",
    "nodes": "nodeName",
}
_REMEMBERED_MAX = 40
_DRIVERS = ("resourceslices", "resourceclaims", "events")


class Asker:
    """Draws requests from a seed, and from what earlier ones brought about."""

    def __init__(self, seed: int, nodes: Sequence[str]) -> None:
        self.rng = random.Random(seed)
        self._targets = served()
        self._node = nodes[0]
        self._names: dict[str, list[str]] = {
            "name": [*NAMES, "default", "nowhere"],
            "namespace": [*NAMESPACES, ""],
            "nodeName": [self._node, "s-1", "nowhere"],
            "uid": ["00000000-0000-4000-8000-000000000000"],
            "resourceClaimName": ["nowhere"],
            "resourceClaimTemplateName": ["nowhere"],
            "deviceClassName": ["c-0", "c-1", "gpu.example.com", "nowhere"],
        }
        self._values = Values(self.rng, self._names)
        self._known: dict[tuple[str, str, str], Fields] = {}  # by plural, namespace and name

    def learn(self, question: Question, answer: bytes) -> None:
        """Remember an object that was stored, so that it can be changed and pointed at."""
        try:
            fields = json.loads(answer)
            metadata = fields["metadata"]
            key = (question.target.kind.plural, metadata.get("namespace", ""), metadata["name"])  # type: ignore[union-attr]
        except (ValueError, KeyError, TypeError, AttributeError):
            return
        if question.kind not in ("create", "apply"):
            return
        self._known[key] = fields
        self._remember("uid", metadata.get("uid", ""))
        self._remember("name", metadata["name"])
        self._remember(_NAMED_BY.get(key[0], ""), metadata["name"])

    def _remember(self, field: str, value: str) -> None:
        """So that later objects point at it; the latest are enough."""
        known = self._names.get(field)
        if known is not None:
            known.append(value)
            del known[: max(0, len(known) - _REMEMBERED_MAX)]

    def questions(self) -> Iterator[Question]:
        """For ever. Every kind comes first once, then as chance has it."""
        for target in self._targets:
            yield self._create(ADMIN, target, changes=0)
        while True:
            yield self._next()

    def _next(self) -> Question:
        rng = self.rng
        actor = rng.choices(ACTORS, (4, 4, 2, 2))[0]
        target = self._target(actor)
        draw = rng.random()
        if self._is_there(actor, target):
            draw = 0.55 + 0.45 * draw  # to create it anew would be refused
        if draw < 0.55 or not self._known:
            return self._create(actor, target, rng.choice((0, 1, 1, 2, 3, 5)))
        if actor == DRIVER and target.kind.has_status and draw < 0.94:
            return self._status(actor, target)
        if draw < 0.66:
            return self._put(actor, target)
        if draw < 0.80:
            return self._patch(actor, target)
        if draw < 0.90:
            return self._status(actor, target)
        if draw < 0.94:
            return self._odd(actor)
        if draw < 0.98:
            return self._delete(actor, target)
        return self._read(actor, target)

    def _is_there(self, actor: str, target: Target) -> bool:
        """What these people change, and others make."""
        if actor == DRIVER:
            return target.kind.plural == "resourceclaims"
        return actor == NODE and target.kind.plural in _NAMED_AFTER_NODE and self.rng.random() < 0.9

    def _target(self, actor: str) -> Target:
        rng = self.rng
        wanted: Sequence[str] = _OFTEN if rng.random() < 0.45 else ()
        if actor in (NODE, DRIVER):
            wanted = _NODES if actor == NODE else _DRIVERS
        found = [one for one in self._targets if not wanted or one.kind.plural in wanted]
        if actor == EDITOR and rng.random() < 0.95:
            found = [one for one in found if one.kind.namespaced and one.kind.plural not in _NOT_EDITED]
        kind = rng.choice(list(dict.fromkeys(one.kind.resource for one in found)))
        return rng.choice([one for one in found if one.kind.resource == kind])

    def _place(self, actor: str, target: Target) -> tuple[str, str]:
        """(namespace, name) of something to write."""
        rng = self.rng
        namespace = rng.choice(NAMESPACES) if actor == ADMIN else NAMESPACES[0]
        if not target.kind.namespaced:
            namespace = ""
        if actor == NODE and target.kind.plural in _NAMED_AFTER_NODE:
            return ("kube-node-lease" if target.kind.namespaced else ""), self._node
        return namespace, rng.choice(NAMES)

    def _create(self, actor: str, target: Target, changes: int) -> Question:
        namespace, name = self._place(actor, target)
        good = self._sound(target, namespace, name, actor)
        fields = mutated(good, target.version.shape(), self._values, changes)
        encoding = self.rng.choices(("json", "yaml", "protobuf"), (6, 1, 3))[0]
        body, media = target.encoded(fields, encoding)
        path = target.path(namespace)
        if self.rng.random() < 0.03:
            path += "?dryRun=All"
        return Question(Sent(actor, "POST", path, body, media), target, fields, good)

    def _sound(self, target: Target, namespace: str, name: str, actor: str = ADMIN) -> Fields:
        kind = target.kind
        # Fresh names now and then: most creations would be refused for their name otherwise.
        fresh = f"{name}-{self.rng.randrange(10**6)}" if self.rng.random() < 0.9 and name in NAMES else name
        fields = sound(kind.group, target.version.name, kind.kind, kind.plural, fresh, namespace)
        if kind.plural == "resourceslices":
            fields["spec"]["nodeName"] = self._node
        if kind.plural == "pods" and actor == NODE:
            fields["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
            fields["spec"] = {**fields["spec"], "nodeName": self._node}
        return fields

    def _existing(self, actor: str, target: Target) -> tuple[str, str, Fields]:
        """(namespace, name, object) of something that was stored, or may have been."""
        plural, version = target.kind.plural, target.api_version
        reach = NAMESPACES if actor == ADMIN else NAMESPACES[:1]
        known = [
            key
            for key, fields in self._known.items()
            if key[0] == plural and (not key[1] or key[1] in reach) and fields["apiVersion"] == version
        ]
        if not known or (actor == NODE and plural in _NAMED_AFTER_NODE):
            namespace, name = self._place(actor, target)
            return namespace, name, self._sound(target, namespace, name, actor)
        _, namespace, name = key = self.rng.choice(known)
        return namespace, name, copy.deepcopy(self._known[key])

    def _put(self, actor: str, target: Target) -> Question:
        namespace, name, good = self._existing(actor, target)
        good.get("metadata", {}).pop("resourceVersion", None)
        fields = mutated(good, target.version.shape(), self._values, self.rng.choice((1, 2, 4)))
        body, media = target.encoded(fields, self.rng.choice(("json", "yaml", "protobuf")))
        return Question(
            Sent(actor, "PUT", target.path(namespace, name), body, media), target, fields, good, "put"
        )

    def _patch(self, actor: str, target: Target, subresource: str = "") -> Question:
        namespace, name, good = self._existing(actor, target)
        rng, shape = self.rng, target.version.shape()
        path, way = target.path(namespace, name, subresource), rng.choice(list(PATCHES))
        fields: Any = mutated({}, shape, self._values, rng.choice((1, 2, 3)))
        if way == "apply":
            about = {"name": name, **({"namespace": namespace} if namespace else {})}
            base = {key: good[key] for key in good if key not in ("metadata", "status")}
            fields = mutated({**base, "metadata": about}, shape, self._values, 2)
            fields["metadata"] = {**(fields.get("metadata") or {}), **about}
            path += f"?fieldManager=m{rng.randrange(3)}&force={rng.choice(('true', 'false'))}"
            body, media = target.encoded(fields, "apply")
            return Question(Sent(actor, "PATCH", path, body, media), target, fields, base, "apply")
        if way == "json":
            fields = [self._step() for _ in range(rng.randrange(1, 3))]
        elif way == "strategic" and rng.random() < 0.3:
            spec = fields.get("spec")
            directive = {"$patch": rng.choice(("replace", "delete", "merge"))}
            fields["spec"] = {**directive, **(spec if isinstance(spec, dict) else {})}
        return Question(
            Sent(actor, "PATCH", path, json.dumps(fields).encode(), PATCHES[way]), target, kind="patch"
        )

    def _step(self) -> Fields:
        """One of a JSON patch."""
        rng = self.rng
        where = (
            "/metadata/labels",
            "/spec",
            "/status",
            "/metadata/annotations/a~1b",
            "/spec/-",
            "/data/x",
            "",
        )
        verb = rng.choice(("add", "replace", "remove", "test", "copy", "move"))
        return {
            "op": verb,
            "path": rng.choice(where),
            "from": rng.choice(where),
            "value": self._values.junk(),
        }

    def _status(self, actor: str, target: Target) -> Question:
        rng = self.rng
        if not target.kind.has_status:
            return self._patch(actor, target)
        if rng.random() < 0.5:
            return self._patch(actor, target, "status")
        namespace, name, good = self._existing(actor, target)
        good.get("metadata", {}).pop("resourceVersion", None)
        shape = target.version.shape().fields.get("status")
        fields = copy.deepcopy(good)
        if shape is not None:
            fields["status"] = self._values.of(shape)
            if target.kind.plural == "resourceclaims" and rng.random() < 0.7:
                fields["status"] = _allocated(self._values)
        body, media = target.encoded(fields, rng.choice(("json", "yaml", "protobuf")))
        path = target.path(namespace, name, "status")
        return Question(Sent(actor, "PUT", path, body, media), target, fields, good, "put")

    def _odd(self, actor: str) -> Question:
        """Subresources, reviews and tokens."""
        rng, values = self.rng, self._values
        pods = next(one for one in self._targets if one.kind.plural == "pods")
        namespace, name, _ = self._existing(actor, pods)
        junk = values.junk()
        apps = f"/apis/apps/v1/namespaces/{namespace}"
        things = f"/apis/fuzz.example.com/v1/namespaces/{namespace}/things/{name}"
        token = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
        grace = {"gracePeriodSeconds": rng.choice((0, -1, 2**62))}
        asked = {"audiences": junk, "expirationSeconds": rng.choice((600, -1, 2**62))}
        choices: list[tuple[str, str, Any]] = [
            ("POST", pods.path(namespace, name, "binding"), {"target": {"kind": "Node", "name": self._node}}),
            ("POST", pods.path(namespace, name, "binding"), {"target": junk}),
            ("POST", pods.path(namespace, name, "eviction"), {"deleteOptions": grace}),
            ("GET", pods.path(namespace, name, "log"), None),
            ("PUT", f"{apps}/deployments/{name}/scale", {"spec": {"replicas": rng.choice((0, 3, -1))}}),
            ("PATCH", f"{apps}/replicasets/{name}/scale", {"spec": {"replicas": junk}}),
            ("PUT", f"{things}/scale", {"spec": {"replicas": 2}}),
            ("POST", token, {"spec": asked}),
            ("POST", f"{_AUTHORIZATION}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": junk}}),
            ("POST", f"{_AUTHORIZATION}/subjectaccessreviews", {"spec": {"user": "x", "extra": junk}}),
            ("POST", _TOKEN_REVIEWS, {"spec": {"token": rng.choice(("", "a.b.c", "x" * 9000))}}),
        ]
        method, path, body = rng.choice(choices)
        media = PATCHES["merge"] if method == "PATCH" else "application/json"
        sent = Sent(actor, method, path, b"" if body is None else json.dumps(body).encode(), media)
        return Question(sent, kind="odd")

    def _delete(self, actor: str, target: Target) -> Question:
        rng = self.rng
        namespace, name, _ = self._existing(actor, target)
        if target.kind.plural == "namespaces" and name in (*NAMESPACES, "default"):
            name = "nowhere"
        if actor == NODE and target.kind.plural == "nodes":
            name = "nowhere"
        options = {
            "propagationPolicy": rng.choice(("Orphan", "Background", "Foreground", None)),
            "gracePeriodSeconds": rng.choice((0, 1, None, -1, 2**62)),
            "preconditions": rng.choice((None, {}, {"uid": "x"}, {"resourceVersion": "1"})),
        }
        everything = rng.random() < 0.05 and target.kind.namespaced
        path = target.path(namespace, "" if everything else name)
        self._known.pop((target.kind.plural, namespace, name), None)
        return Question(Sent(actor, "DELETE", path, json.dumps(options).encode()), kind="delete")

    def _read(self, actor: str, target: Target) -> Question:
        namespace, name, _ = self._existing(actor, target)
        query = self.rng.choice(_READS)
        single = self.rng.random() < 0.3
        path = target.path(namespace, name) if single else f"{target.path(namespace)}?{query}"
        return Question(Sent(actor, "GET", path), kind="read")


def _allocated(values: Values) -> Fields:
    """A claim's status that says it has something; strange in its amounts and names."""
    rng = values.rng
    result = {
        "request": rng.choice(("r", "r/x", "nowhere")),
        "driver": values.text("driver") or "d.example.com",
        "pool": "p",
        "device": rng.choice(("d-0", "d-1")),
        "consumedCapacity": {"memory": rng.choice(("1Gi", "0", "1n", "1e30", 5))},
        "shareID": values.text("shareID"),
        "tolerations": [{"operator": "Exists"}],
    }
    always = ("request", "driver", "pool", "device")
    chosen = {key: value for key, value in result.items() if key in always or rng.random() < 0.3}
    status: Fields = {"allocation": {"devices": {"results": [chosen] * rng.choice((0, 1, 1, 2))}}}
    if rng.random() < 0.5:
        entries = [{"resource": "pods", "name": values.text("name") or "x", "uid": values.text("uid") or "u"}]
        status["reservedFor"] = entries * rng.choice((1, 2))
    if rng.random() < 0.3:
        about = {key: chosen[key] for key in always if key != "request"}
        status["devices"] = [{**about, "data": values.junk(), "conditions": []}]
    if rng.random() < 0.2:
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}]
        status["allocation"]["nodeSelector"] = rng.choice(
            ({"nodeSelectorTerms": []}, {"nodeSelectorTerms": terms})
        )
    return status
