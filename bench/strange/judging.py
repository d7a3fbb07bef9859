"""Does the cluster still do what a cluster does, whatever lies in it?

Said by ordinary work of somebody who did nothing strange: a Deployment whose pods ask for a device
gets them and runs, a new right counts, a watch tells, every kind can be listed in every version, and
a namespace that is deleted goes. And by what the cluster says of itself: readyz, and no traceback.
"""

import asyncio
import time
from typing import Any

from .asking import ADMIN, EDITOR
from .requests import Sent, served
from .world import Failed, World

WORK_S = 90.0
_EVERY_S = 0.15
_EVERY_TAINT = [{"operator": "Exists"}, {"operator": "Exists", "effect": "NoExecute"}]
"""Without its effect a toleration lets a pod come, and does not let it stay."""


async def judge(world: World, name: str) -> None:
    """Raises `Failed` with the first thing that is wrong. `name` is of this look alone."""
    world.require_alive()
    said = tracebacks(world.said())
    if said:
        raise Failed(f"it logged {len(said)} tracebacks that differ: " + "\n".join(said[:5]))
    ready = await world.ask("GET", "/readyz?verbose")
    if ready.said != "200":
        raise Failed(f"readyz says {ready.said}: {ready.body[:600].decode(errors='replace')}")
    await _lists(world)
    await _works(world, name)


def tracebacks(log: str) -> list[str]:
    """Each one once, by its end: the line that logged it, the last frames, the exception."""
    found: dict[str, str] = {}
    lines = log.splitlines()
    for start, line in enumerate(lines):
        if line.startswith("Traceback (most"):
            frames = []
            for end in range(start + 1, len(lines)):
                frames.append(lines[end])
                if not lines[end].startswith(" "):
                    break
            told = lines[start - 1] if start else ""
            found.setdefault("\n".join(frames[-3:]), "\n".join([told, *frames[-8:]]))
    return list(found.values())


async def _lists(world: World) -> None:
    for target in served():
        answer = await world.ask("GET", target.path(""))
        if answer.said != "200":
            raise Failed(f"a list of {target.path('')} was answered {answer.said}: {answer.body[:300]!r}")


async def _works(world: World, name: str) -> None:
    await world.must("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    await world.must("POST", "/apis/resource.k8s.io/v1/resourceslices", _slice(name))
    selector = {"cel": {"expression": f"device.driver == '{name}.example.com'"}}
    made = {"metadata": {"name": name}, "spec": {"selectors": [selector]}}
    await world.must("POST", "/apis/resource.k8s.io/v1/deviceclasses", made)
    path = f"/apis/resource.k8s.io/v1/namespaces/{name}/resourceclaimtemplates"
    exactly = {"deviceClassName": name, "tolerations": _EVERY_TAINT}
    claim = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    await world.must("POST", path, {"metadata": {"name": "gpu"}, "spec": {"spec": claim}})
    await world.must("POST", f"/apis/apps/v1/namespaces/{name}/deployments", _deployment(world.nodes[1]))
    binding = {
        "metadata": {"name": "look"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "editor"}],
    }
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{name}/rolebindings"
    await world.must("POST", path, binding)
    await _until("two pods with a device run", lambda: _running(world, name))
    await _until("a right that was given counts", lambda: _may_look(world, name))
    await _watched(world, name)
    await world.must("DELETE", f"/api/v1/namespaces/{name}")
    await _until("a deleted namespace is gone", lambda: _gone(world, name))


def _slice(name: str) -> dict[str, Any]:
    """Devices of its own, and more than strange claims that tolerate everything could take."""
    taint = {"key": "canary", "effect": "NoSchedule"}
    devices = [{"name": f"d-{number}", "taints": [taint]} for number in range(60)]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": f"{name}.example.com", "pool": pool, "allNodes": True, "devices": devices}
    return {"metadata": {"name": name}, "spec": spec}


def _deployment(node: str) -> dict[str, Any]:
    """On a node that is sound: others may be nodes by name only, and ready by their own word."""
    labels = {"app": "canary"}
    pod = {
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        "nodeSelector": {"kubernetes.io/hostname": node},
        "tolerations": [{"operator": "Exists"}],
        "priorityClassName": "system-node-critical",
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "canary"}, "spec": spec}


async def _until(what: str, found: Any) -> None:
    until, seen = time.monotonic() + WORK_S, ""
    while time.monotonic() < until:
        seen = await found()
        if not seen:
            return
        await asyncio.sleep(_EVERY_S)
    raise Failed(f"{what}: not within {WORK_S:.0f} s; {seen}")


async def _running(world: World, name: str) -> str:
    pods = (await world.must("GET", f"/api/v1/namespaces/{name}/pods"))["items"]
    running = [one for one in pods if one.get("status", {}).get("phase") == "Running"]
    if len(running) >= 2:
        return ""
    return "; ".join(map(_standing, pods)) or "there are no pods"


def _standing(pod: dict[str, Any]) -> str:
    status = pod.get("status", {})
    said = [
        f"{one.get('type')} {one.get('reason', '')} {one.get('message', '')}"
        for one in status.get("conditions", ())
    ]
    where = pod["spec"].get("nodeName", "nowhere")
    return f"{status.get('phase')} on {where} {status.get('message', '')}: {', '.join(said)}"


async def _may_look(world: World, name: str) -> str:
    answer = await world.ask("GET", f"/api/v1/namespaces/{name}/pods", actor=EDITOR)
    return "" if answer.said == "200" else f"answered {answer.said}"


async def _watched(world: World, name: str) -> None:
    """A watch of pods in all namespaces tells of a new one."""
    connection = await world.connect(ADMIN)
    if connection is None:
        raise Failed("it lets nobody in any more")
    try:
        await connection.send(world.request(Sent(ADMIN, "GET", "/api/v1/pods?watch=1&timeoutSeconds=60")))
        head = await connection.head()
        if head.said != "200":
            raise Failed(f"a watch of pods was answered {head.said}")
        container = {"name": "c", "image": "i"}
        pod = {
            "metadata": {"name": "watched"},
            "spec": {"containers": [container], "schedulerName": "nobody"},
        }
        await world.must("POST", f"/api/v1/namespaces/{name}/pods", pod)
        until = time.monotonic() + WORK_S
        while (line := await connection.line(max(0.01, until - time.monotonic()))) is not None:
            if b'"watched"' in line:
                return
            if not line:
                break
        raise Failed("a watch of pods did not tell of a new pod")
    finally:
        connection.close()


async def _gone(world: World, name: str) -> str:
    answer = await world.ask("GET", f"/api/v1/namespaces/{name}")
    return "" if answer.said == "404" else answer.body[-600:].decode(errors="replace")
