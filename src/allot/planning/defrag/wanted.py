"""What is to fit: a pod that waits, what a file would bring, or so many devices of a class or profile."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from allot.api import Fields, Object, encode
from allot.informers import Key
from allot.scheduler import CLAIMS, CLASSES, PODS, PodInfo, Reading, Snapshot

from ..changes import Apply, BadChange
from ..dump import TEMPLATES
from ..future import Cluster, made
from ..manifests import Manifest

NAME = "defrag"
_PROFILE = re.compile(r"(?:(\d{1,4})x)?(.+)")


@dataclass(frozen=True, slots=True)
class Wanted:
    reading: Reading  # of the cluster, with what comes with them
    pods: tuple[PodInfo, ...]

    @property
    def priority(self) -> int:
        return max((pod.priority for pod in self.pods), default=0)


def waiting(cluster: Cluster, name: str, namespace: str) -> Wanted:
    """A pod of the cluster; it may have found its place meanwhile. Raises BadChange."""
    pod = cluster.reading.pods.get(Key(namespace, name))
    if pod is None or pod.view.is_finished or pod.is_deleting:
        raise BadChange(f"there is no pod {namespace}/{name} that waits for a node")
    return Wanted(cluster.reading, (pod,))


def from_manifests(cluster: Cluster, manifests: Sequence[Manifest]) -> Wanted:
    """The pods among them, those of workloads included; without any, one pod for each claim and template.
    Raises BadChange."""
    there = [one for one in manifests if _is_there(cluster, one)]
    rest = [one for one in manifests if one not in there]
    future = made(cluster, [Apply(tuple(rest))]) if rest else None
    coming = tuple(future.coming) if future is not None else ()
    if future is not None and not coming and not there:
        pods = [pod for one in manifests if (pod := _user(one)) is not None]
        future = made(cluster, [Apply((*manifests, *pods))])
        coming = tuple(future.coming)
    if future is not None and future.refused:
        what, why = next(iter(future.refused.items()))
        raise BadChange(f"{what} would not be admitted: {why}")
    if future is not None and future.notes:
        raise BadChange(future.notes[0])
    waits = [cluster.reading.pods[Key.of(one.object)] for one in there]
    if not waits and not coming:
        raise BadChange("there is no pod, workload, claim or claim template to make room for")
    return Wanted(future.reading if future is not None else cluster.reading, (*waits, *coming))


def of_profile(cluster: Cluster, text: str, namespace: str) -> Wanted:
    """[COUNTx]NAME: so many devices of the class, or of the profile, that has this name. Raises BadChange."""
    found = _PROFILE.fullmatch(text)
    count, name = int(found[1] or 1) if found else 0, found[2] if found else ""
    if count < 1:
        raise BadChange(f"{text!r} is not [COUNTx]NAME, such as 3g.40gb or 4xgpu.example.com")
    snapshot = cluster.reading.snapshot
    manifests = []
    device_class = name
    if name not in set(snapshot.classes):
        driver = _driver_of(snapshot, name)
        device_class = f"{NAME}-{name}"
        manifests.append(Manifest(CLASSES, Object(encode(_class(device_class, driver, name)))))
    request = {"name": "devices", "exactly": {"deviceClassName": device_class, "count": count}}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": NAME, "namespace": namespace, "uid": f"<{NAME}>"},
        "spec": {"devices": {"requests": [request]}},
    }
    manifests.append(Manifest(CLAIMS, Object(encode(claim))))
    return from_manifests(cluster, manifests)


def _is_there(cluster: Cluster, manifest: Manifest) -> bool:
    return manifest.object.kind == "Pod" and Key.of(manifest.object) in cluster.reading.pods


def _user(manifest: Manifest) -> Manifest | None:
    """A pod that wants this claim, and nothing else."""
    how = {CLAIMS.plural: "resourceClaimName", TEMPLATES.plural: "resourceClaimTemplateName"}
    entry = how.get(manifest.what.plural)
    if entry is None:
        return None
    object = manifest.object
    pod: Fields = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{object.name}-user",
            "namespace": object.namespace,
            "uid": f"<{object.namespace}/{object.name}-user>",
        },
        "spec": {"containers": [{"name": "main"}], "resourceClaims": [{"name": "claim", entry: object.name}]},
    }
    return Manifest(PODS, Object(encode(pod)))


def _driver_of(snapshot: Snapshot, profile: str) -> str:
    names: set[str] = set()
    for shelf in snapshot.inventory.slices():
        for device in shelf.devices:
            said = device.kind.attribute(f"{device.id.driver}/profile")
            if said is not None and said.string:
                if said.string == profile:
                    return device.id.driver
                names.add(said.string)
    known = ", ".join(sorted({*names, *snapshot.classes}))
    raise BadChange(f"no device class and no profile is called {profile!r}; there are {known or 'none'}")


def _class(name: str, driver: str, profile: str) -> dict[str, Any]:
    own = f'device.attributes["{driver}"].profile'
    expression = f'device.driver == "{driver}" && has({own}) && {own} == "{profile}"'
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name, "uid": f"<{name}>"},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }
