"""What a pod says of itself to its containers: fields and resources, as variables and as files. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from allot.api import Object, Quantity, core

from .views import Container, ResourceRef

_NAMED = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")
_HOSTNAME_MAX = 63
_IN_THOUSANDTHS = "cpu"
_REQUESTED = ("cpu", "memory", "ephemeral-storage")


class UnknownField(Exception):
    """The message names the field."""


class Around(NamedTuple):
    """What a container may ask about, beside its pod."""

    host: str  # the node's address
    allocatable: Mapping[str, str] = {}  # what stands for a limit that nobody has set
    own: tuple[str, ...] = ()  # addresses of the pod; none: it has the node's


def hostname(pod: Object) -> str:
    """What its containers call themselves: its name, as far as the system takes one."""
    named = str((pod.fields.get("spec") or {}).get("hostname") or pod.name)
    return named if len(named) <= _HOSTNAME_MAX else named[:_HOSTNAME_MAX].rstrip("-.")


def field(pod: Object, path: str, around: Around) -> str:
    """The text of one field. Raises UnknownField."""
    view = pod.view(core.Pod)
    named = _NAMED.fullmatch(path)
    if named is not None:
        return (view.metadata.labels if named[1] == "labels" else view.metadata.annotations).get(named[2], "")
    host, spec = around.host, pod.fields.get("spec") or {}
    known = {
        "metadata.name": pod.name,
        "metadata.namespace": pod.namespace,
        "metadata.uid": pod.uid,
        "spec.nodeName": view.spec.node_name,
        "spec.serviceAccountName": str(spec.get("serviceAccountName") or ""),
        "status.podIP": around.own[0] if around.own else host,
        "status.podIPs": ",".join(around.own) or host,
        "status.hostIP": host,
        "status.hostIPs": host,
    }
    if path not in known:
        raise UnknownField(f"field {path} is not known to this node")
    return known[path]


def file(pod: Object, path: str, around: Around) -> str:
    """The same for a file, which may hold all labels or annotations."""
    view = pod.view(core.Pod)
    if path == "metadata.labels":
        return _listed(view.metadata.labels)
    if path == "metadata.annotations":
        return _listed(view.metadata.annotations)
    return field(pod, path, around)


def resource(containers: Iterable[Container], own: str, ref: ResourceRef, around: Around) -> str:
    """How much of something a container may use or has asked for, in units of the divisor, rounded up.

    Raises UnknownField."""
    name = ref.container_name or own
    container = next((one for one in containers if one.name == name), None)
    if container is None:
        raise UnknownField(f"resource {ref.resource}: the pod has no container {name}")
    side, _, what = ref.resource.partition(".")
    if side not in ("limits", "requests") or not what:
        raise UnknownField(f"resource {ref.resource} is not known to this node")
    amount = _amount(container, side, what, around)
    divisor = Quantity.parse(str(ref.divisor) or "0")
    if not divisor:
        divisor = Quantity.of(1)
    if what == _IN_THOUSANDTHS:
        return str(-(-amount.milli() // divisor.milli()))
    return str(-(-amount.nano // divisor.nano))


def _amount(container: Container, side: str, what: str, around: Around) -> Quantity:
    """A limit that nobody has set is what the node has; a request that nobody has set is none."""
    amounts = container.resources.limits if side == "limits" else container.resources.requests
    text = amounts.get(what)
    if text is None and side == "limits" and what in _REQUESTED:
        text = around.allocatable.get(what)
    return Quantity.parse(text) if text is not None else Quantity.of(0)


def _listed(values: Mapping[str, str]) -> str:
    """As `key="value"` with what would end the line or the text escaped."""
    return "\n".join(f'{key}="{_escaped(values[key])}"' for key in sorted(values))


def _escaped(text: str) -> str:
    for character, shown in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r")):
        text = text.replace(character, shown)
    return text
