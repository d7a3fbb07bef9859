"""Attacks by growth: little is sent at a time, much is kept."""

import asyncio
import time
from typing import Any

from . import wire
from .scene import HERE, NAMESPACE, Scene, Unset

_PATCH_BYTES = 2_900_000
_MERGE = "application/merge-patch+json"


async def grown_object(scene: Scene) -> None:
    """One object patched 51 times: with fields that nobody knows, with ones that everybody does, and
    by as many appliers; read in between."""
    size = scene.of(_PATCH_BYTES)
    await scene.made(f"{HERE}/configmaps", {"metadata": {"name": "grown"}})
    await scene.made(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments", _deployment("grown"))
    map_, deployment = f"{HERE}/configmaps/grown", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/grown"
    filling = "x" * size
    environment = [{"name": f"V{i}", "value": "v" * 900} for i in range(size // 940)]
    shots = []
    for number in range(scene.of(51)):
        shots.append(wire.request("PATCH", map_, wire.encoded({f"x{number}": filling}), _MERGE))
        shots.append(wire.request("PATCH", deployment, _more(environment, number), _MERGE))
        applied = {"apiVersion": "v1", "kind": "ConfigMap", "data": {f"k{number}": filling[:900_000]}}
        path = f"{map_}?fieldManager=m{number}&force=true"
        shots.append(wire.request("PATCH", path, wire.encoded(applied), "application/apply-patch+yaml"))
        if number % 10 == 0:
            shots.append(wire.get(map_))
    await scene.begin()
    await scene.bombard(scene.mallory, shots, seconds=0)


def _more(environment: list[dict[str, str]], number: int) -> bytes:
    """Another annotation of the template with the environment beside it: known fields, all of them."""
    container = {"name": "c", "image": "i", "env": environment}
    template = {
        "metadata": {"annotations": {f"n{number}": "y" * 200_000}},
        "spec": {"containers": [container]},
    }
    return wire.encoded({"spec": {"template": template}})


def _deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template}}


async def defaulted_items(scene: Scene) -> None:
    """A definition with a default of 400 KB in three places, and objects with a thousand items without it."""
    group = "grown.example.com"
    note = {"type": "string", "default": "x" * scene.of(400_000)}
    item = {"type": "object", "properties": {"note": note}}
    nested = {"type": "object", "default": {}, "properties": {"inner": {**item, "default": {}}}}
    properties = {
        "items": {"type": "array", "items": item},
        "nested": {"type": "array", "items": nested},
        "named": {"type": "object", "additionalProperties": item},
    }
    version = {
        "name": "v1", "served": True, "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }  # fmt: skip
    names = {"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"}
    spec = {"group": group, "names": names, "scope": "Namespaced", "versions": [version]}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await scene.made(definitions, {"metadata": {"name": f"things.{group}"}, "spec": spec})
    await scene.allow(group, "things")
    path = f"/apis/{group}/v1/namespaces/{NAMESPACE}/things"
    await _served(scene, path)
    count = scene.of(1000)
    bodies: list[dict[str, Any]] = [
        {"items": [{}] * count},
        {"nested": [{}] * count},
        {"named": {f"n{i}": {} for i in range(count)}},
    ]
    about = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"generateName": "t-"}}
    shots = [wire.post(path, {**about, **body}) for body in bodies]
    await scene.begin()
    await scene.bombard(scene.mallory, shots)


async def _served(scene: Scene, path: str) -> None:
    """A definition that was just made is served a moment later."""
    connection = await wire.Connection.open(scene.port, scene.admin)
    for _ in range(200):
        if (await connection.ask(wire.get(path))).said == "200":
            break
        await asyncio.sleep(0.05)
    else:
        raise Unset(f"{path} is not served")
    connection.close()


async def heavy_updates(scene: Scene) -> None:
    """1,500 updates of an object of a megabyte: what is kept for watchers must have an end."""
    await scene.made(f"{HERE}/configmaps", {"metadata": {"name": "heavy"}})
    shots = []
    for number in range(8):
        content = {"metadata": {"name": "heavy"}, "data": {"k": str(number) * scene.of(1_000_000)}}
        shots.append(wire.request("PUT", f"{HERE}/configmaps/heavy", wire.encoded(content)))
    left, until = scene.of(1500), time.monotonic() + 40
    await scene.begin()

    async def update(first: int) -> None:
        nonlocal left
        connection = await wire.connected(scene.port, scene.mallory)
        number = first
        while connection is not None and left > 0 and time.monotonic() < until:
            left, number = left - 1, number + 1
            answer = await connection.ask(shots[number % len(shots)])
            scene.answers[answer.reason] += 1
            if answer.said == "429":
                await asyncio.sleep(0.02)
        if connection:
            connection.close()

    await asyncio.gather(*(update(first) for first in range(4)))
    scene.notes["updates_not_sent"] = max(0, left)
