"""metrics.k8s.io: what nodes and pods use, as `kubectl top` shows it.

Nothing of it is stored, and nobody measures in vain: the agents are asked when somebody wants to know, and
their answers are good for FRESH_S. On hollow nodes nothing is used; a pod there may say what it would use, in
the annotations CPU and MEMORY, and the node uses the sum.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from allot.api import Kind, Object, Quantity, QuantityFormat, Request, Response, age, encode, errors, usage
from allot.base import Clock

from .reading.cache import Caches
from .requests.selectors import parse_fields, parse_labels
from .requests.target import Target
from .requests.warnings import warning_headers
from .subresources.reaching import is_hollow_runtime

log = logging.getLogger(__name__)

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
METERED = (
    (GROUP, VERSION, "nodes", "NodeMetrics", False),
    (GROUP, VERSION, "pods", "PodMetrics", True),
)
"""(group, version, plural, kind, namespaced)"""
CPU, MEMORY = "hollow.allot.dev/cpu-usage", "hollow.allot.dev/memory-usage"
FRESH_S = 10.0
ASK_S = 15.0
ASKED_AT_ONCE = 32
READ_AT_ONCE = 500
_HOLLOW_WINDOW_S = 30.0

Ask = Callable[[Object, Request], Awaitable[Response]]
"""Of the agent of a node."""


class Used(msgspec.Struct, frozen=True):
    """By one container, or a node."""

    name: str
    cpu: Quantity
    memory: Quantity

    def fields(self) -> dict[str, str]:
        return {"cpu": str(self.cpu), "memory": str(self.memory)}


class Seen(msgspec.Struct, frozen=True):
    """What was used of one node or pod, when."""

    object: Object
    used: Sequence[Used]
    time: str
    window_s: float


class _Named(msgspec.Struct):
    name: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    containers: list[_Named] = []


class _Info(msgspec.Struct, rename="camel"):
    container_runtime_version: str = ""


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    node_info: _Info | None = None


class _Said(msgspec.Struct):
    """What is read of pods and nodes here: to decode all of a large cluster would hold up everybody, and to
    keep what was decoded would fill the memory."""

    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def is_hollow(self) -> bool:
        info = self.status.node_info
        return info is not None and is_hollow_runtime(info.container_runtime_version)


_read = msgspec.json.Decoder(_Said).decode


class Metering:
    def __init__(self, caches: Caches, nodes: Kind, pods: Kind, ask: Ask, clock: Clock) -> None:
        self._caches = caches
        self._nodes = nodes
        self._pods = pods
        self._ask = ask
        self._clock = clock
        self._known: dict[str, tuple[float, usage.Machine]] = {}  # by node: when we heard, what
        self._places = asyncio.Semaphore(ASKED_AT_ONCE)

    async def answer(self, target: Target, request: Request) -> Response:
        if target.verb not in ("get", "list") or target.subresource:
            raise errors.MethodNotAllowed("the server does not allow this method on the requested resource")
        is_of_pods = target.plural == "pods"
        wanted = await self._wanted(self._pods if is_of_pods else self._nodes, target, request)
        seen, hollow = await (self._of_pods(wanted) if is_of_pods else self._of_nodes(wanted))
        show = pod_metrics if is_of_pods else node_metrics
        if target.name:
            if not seen:
                raise _not_there(target, bool(hollow))
            return Response(200, encode(show(seen[0])))
        kind = "PodMetricsList" if is_of_pods else "NodeMetricsList"
        listed = {"kind": kind, "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}}
        headers = warning_headers([_left_out(hollow, target.plural)]) if hollow else ()
        return Response(200, encode({**listed, "items": [show(one) for one in seen]}), headers=headers)

    async def _wanted(self, kind: Kind, target: Target, request: Request) -> list[Object]:
        labels = parse_labels(request.query.get("labelSelector", ""))
        fields = parse_fields(request.query.get("fieldSelector", ""))
        for field in fields.fields:
            if field not in ("metadata.name", "metadata.namespace"):
                raise errors.BadRequest(f'"{field}" is not a known field selector')

        def is_wanted(one: Object) -> bool:
            def read(field: str) -> str:
                return one.name if field == "metadata.name" else one.namespace

            return (
                (not target.name or one.name == target.name)
                and (not kind.namespaced or not target.namespace or one.namespace == target.namespace)
                and labels.accepts(one.metadata.labels)
                and fields.accepts(read)
            )

        return [one async for one in self._all(kind) if is_wanted(one)]

    async def _all(self, kind: Kind) -> AsyncIterator[Object]:
        """Others have their turn in between."""
        for at, one in enumerate(list((await self._caches.of(kind)).objects.values())):
            if at % READ_AT_ONCE == READ_AT_ONCE - 1:
                await asyncio.sleep(0)
            yield one

    # -- nodes and pods -------------------------------------------------------------------------

    async def _of_nodes(self, nodes: Sequence[Object]) -> tuple[list[Seen], list[str]]:
        """What was seen, and of which there is nothing to see since they are hollow."""
        hollow = [one for one in nodes if _read(one.stored).is_hollow]
        names = {one.name for one in hollow}
        real = [one for one in nodes if one.name not in names]
        seen = [
            Seen(node, [used(node.name, said.cpu_nano, said.memory_bytes)], said.time, said.window_s)
            for node, said in zip(real, await self._asked(real), strict=True)
            if said is not None
        ]
        played: dict[str, list[Used]] = {}
        if hollow:
            async for pod in self._all(self._pods):
                said_by = _played(pod)
                if said_by is not None and (where := _runs_on(pod)) in names:
                    played.setdefault(where, []).append(said_by)
        for node in hollow:
            if node.name in played:
                seen.append(self._seen_now(node, [_sum(node.name, played[node.name])]))
        return seen, [one.name for one in hollow if one.name not in played]

    async def _of_pods(self, pods: Sequence[Object]) -> tuple[list[Seen], list[str]]:
        nodes = {one.name: one for one in (await self._caches.of(self._nodes)).objects.values()}
        by_node: dict[str, list[Object]] = {}
        for at, pod in enumerate(pods):
            if at % READ_AT_ONCE == READ_AT_ONCE - 1:
                await asyncio.sleep(0)
            if (where := _runs_on(pod)) in nodes:
                by_node.setdefault(where, []).append(pod)
        hollow = [name for name in by_node if _read(nodes[name].stored).is_hollow]
        seen: list[Seen] = []
        silent: list[str] = []
        for name in hollow:
            for pod in by_node.pop(name):
                said_by = _played(pod)
                if said_by is None:
                    silent.append(pod.name)
                else:
                    seen.append(self._seen_now(pod, _shared_out(pod, said_by)))
        asked = await self._asked([nodes[name] for name in by_node])
        for here, said in zip(by_node.values(), asked, strict=True):
            if said is not None:
                seen += _measured(here, said)
        return sorted(seen, key=lambda one: (one.object.namespace, one.object.name)), silent

    def _seen_now(self, what: Object, used_by: Sequence[Used]) -> Seen:
        return Seen(what, used_by, age.timestamp(self._clock.now()), _HOLLOW_WINDOW_S)

    # -- agents ---------------------------------------------------------------------------------

    async def _asked(self, nodes: Iterable[Object]) -> list[usage.Machine | None]:
        return list(await asyncio.gather(*map(self._of_agent, nodes)))

    async def _of_agent(self, node: Object) -> usage.Machine | None:
        """None where it does not answer: others are shown all the same."""
        now_s = self._clock.monotonic_s()
        heard_s, said = self._known.get(node.name, (-FRESH_S, None))
        if said is not None and now_s - heard_s < FRESH_S:
            return said
        try:
            async with self._places, asyncio.timeout(ASK_S):
                answer = await self._ask(node, Request("GET", "/usage"))
            if answer.status != 200:
                raise errors.Unavailable(answer.body.decode(errors="replace").strip())
            said = usage.decode(answer.body)
        except (errors.ApiError, TimeoutError, msgspec.DecodeError) as silent:
            log.info("node %s does not say what it uses: %s", node.name, silent or "no answer in time")
            self._known.pop(node.name, None)
            return None
        self._known[node.name] = (self._clock.monotonic_s(), said)
        return said


def used(name: str, cpu_nano: int, memory_bytes: int) -> Used:
    memory = Quantity.of(memory_bytes // 1024 * 1024, QuantityFormat.BINARY_SI)
    return Used(name, Quantity(cpu_nano, scale=-9), memory)


def _measured(pods: Iterable[Object], said: usage.Machine) -> Iterable[Seen]:
    of_pod: dict[str, list[Used]] = {}
    for one in said.containers:
        of_pod.setdefault(one.pod_uid, []).append(used(one.name, one.cpu_nano, one.memory_bytes))
    return [Seen(pod, of_pod[pod.uid], said.time, said.window_s) for pod in pods if pod.uid in of_pod]


def _played(pod: Object) -> Used | None:
    """What a pod on a hollow node says of itself; None if that is nothing, or makes no sense."""
    said = pod.metadata.annotations or {}
    if CPU not in said and MEMORY not in said:
        return None
    try:
        return Used(pod.name, Quantity.parse(said.get(CPU, "0")), Quantity.parse(said.get(MEMORY, "0")))
    except ValueError:
        return None


def _runs_on(pod: Object) -> str:
    """The node of a pod that runs, or nothing."""
    said = _read(pod.stored)
    return said.spec.node_name if said.status.phase == "Running" else ""


def _shared_out(pod: Object, of_pod: Used) -> list[Used]:
    """All of it is used by the first container: the sum is what was said."""
    first, *others = [one.name for one in _read(pod.stored).spec.containers]
    nothing = Quantity(0)
    return [Used(first, of_pod.cpu, of_pod.memory), *(Used(name, nothing, nothing) for name in others)]


def _sum(name: str, parts: Sequence[Used]) -> Used:
    cpu, memory = parts[0].cpu, parts[0].memory
    for one in parts[1:]:
        cpu, memory = cpu + one.cpu, memory + one.memory
    return Used(name, cpu, memory)


def node_metrics(seen: Seen) -> dict[str, Any]:
    return {**_head("NodeMetrics", seen), "usage": seen.used[0].fields()}


def pod_metrics(seen: Seen) -> dict[str, Any]:
    containers = [{"name": one.name, "usage": one.fields()} for one in seen.used]
    return {**_head("PodMetrics", seen), "containers": containers}


def _head(kind: str, seen: Seen) -> Mapping[str, Any]:
    one = seen.object
    metadata: dict[str, Any] = {"name": one.name, "creationTimestamp": seen.time}
    if one.namespace:
        metadata["namespace"] = one.namespace
    if one.metadata.labels:
        metadata["labels"] = dict(one.metadata.labels)
    return {
        "kind": kind,
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": metadata,
        "timestamp": seen.time,
        "window": f"{seen.window_s:.3f}s",
    }


def _not_there(target: Target, is_hollow: bool) -> errors.NotFound:
    whose = f"{target.namespace}/{target.name}" if target.namespace else target.name
    why = " (it is hollow: nothing really runs there, and nothing is used)" if is_hollow else ""
    if is_hollow and target.namespace:
        why = f" (its node is hollow: nothing really runs there; {CPU} and {MEMORY} would say what it uses)"
    return errors.NotFound(
        f'{target.plural}.{GROUP} "{whose}" not found{why}',
        group=GROUP,
        kind=target.plural,
        name=target.name,
    )


def _left_out(hollow: Sequence[str], plural: str) -> str:
    """A warning: lists say nothing of what is not in them."""
    if len(hollow) == 1:
        where = "hollow" if plural == "nodes" else "on a hollow node"
        who = f"{plural.removesuffix('s')} {hollow[0]} is {where}"
        return f"{who}, where nothing really runs: it is not shown"
    where = "hollow" if plural == "nodes" else "on hollow nodes"
    return f"{len(hollow)} {plural} are {where}, where nothing really runs: they are not shown"
