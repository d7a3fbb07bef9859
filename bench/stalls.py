"""How long a client of a whole cluster waits while its controllers work on something large. Prints JSON.

    bench/stalls.py

A fresh `allot up` each time, with the API server in the process of the rest (`--one-process`) and in one of
its own. Mallory writes what a user may write and a controller has much to do with; Alice, in a process of
her own, does small things at a steady pace (`attacks/probe.py`), and what she waits at worst is the figure.
`quiet` says what the machine itself does to her.

    budgets   a disruption budget whose selector has 15,000 expressions, and 100 pods that it counts
    claims    ten pods that use 5,000 claims each, made from a template
    owners    config maps with 10,000 owners, none of whom exists
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import attacks
import uvloop
from attacks import wire
from attacks.scene import HERE, Scene

PROCESSES = {"one_process": ("up", "--nodes", "1", "--one-process"), "two_processes": ("up", "--nodes", "1")}
_WORKING_S = 8.0
"""What was written is worked on after the answer."""


async def quiet(scene: Scene) -> None:
    await scene.begin()


async def budgets(scene: Scene) -> None:
    pods = [wire.post(f"{HERE}/pods", _pod(f"p-{number}")) for number in range(100)]
    await scene.bombard(scene.mallory, pods, seconds=0)
    expressions = [{"key": f"key-{number}", "operator": "DoesNotExist"} for number in range(15_000)]
    spec = {"minAvailable": 1, "selector": {"matchExpressions": expressions}}
    budget = {"metadata": {"name": "large"}, "spec": spec}
    path = "/apis/policy/v1/namespaces/mallory/poddisruptionbudgets"
    await scene.begin()
    await scene.bombard(scene.mallory, [wire.post(path, budget)], seconds=0)


async def claims(scene: Scene) -> None:
    template = {"metadata": {"name": "none"}, "spec": {"spec": {"devices": {}}}}
    await scene.made("/apis/resource.k8s.io/v1/namespaces/mallory/resourceclaimtemplates", template)
    used = [{"name": f"c-{number}", "resourceClaimTemplateName": "none"} for number in range(5_000)]
    pods = [wire.post(f"{HERE}/pods", _pod(f"p-{number}", resourceClaims=used)) for number in range(10)]
    await scene.begin()
    await scene.bombard(scene.mallory, pods, seconds=0)


async def owners(scene: Scene) -> None:
    listed = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": f"o-{number}", "uid": f"uid-{number}"}
        for number in range(10_000)
    ]
    maps = [
        wire.post(f"{HERE}/configmaps", {"metadata": {"name": f"m-{number}", "ownerReferences": listed}})
        for number in range(3)
    ]
    await scene.begin()
    await scene.bombard(scene.mallory, maps, seconds=0)


LARGE: dict[str, Callable[[Scene], Awaitable[None]]] = {
    "quiet": quiet,
    "budgets": budgets,
    "claims": claims,
    "owners": owners,
}


def _pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "1m"}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


async def waited(what: str, command: tuple[str, ...]) -> dict[str, Any]:
    async with attacks.scene(1.0, command=command) as scene:
        await LARGE[what](scene)
        await asyncio.sleep(_WORKING_S)
        await scene.finish()
        figures = {name: scene.seen[name] for name in ("worst_ms", "p99_ms", "p50_ms", "refused")}
        return {**figures, "answers": dict(scene.answers)}


async def run() -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for what in LARGE:
        figures[what] = {}
        for how, command in PROCESSES.items():
            figures[what][how] = found = await waited(what, command)
            print(f"{what}, {how}: worst {found['worst_ms']} ms", file=sys.stderr, flush=True)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    print(json.dumps(uvloop.run(run()), indent=1))


if __name__ == "__main__":
    main()
