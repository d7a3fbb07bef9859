"""Small objects for quota tests; every argument has a default."""

from typing import Any

from allot.quota import CLAIMS, PODS, Context, Source, Subject, usage

GPU = "gpu.example.com"
DEVICES = f"{GPU}.deviceclass.resource.k8s.io/devices"
IMPLICIT = f"requests.deviceclass.resource.kubernetes.io/{GPU}"
EXTENDED = "requests.example.com/gpu"
MAPPED = Context({GPU: "example.com/gpu"})


def container(name: str = "main", limits: dict[str, str] | None = None, **requests: str) -> dict[str, Any]:
    named = {key.replace("_", "-"): amount for key, amount in requests.items()}
    resources = {"requests": named} | ({"limits": limits} if limits else {})
    return {"name": name, "image": "app:1", "resources": resources}


def asking(amounts: dict[str, str], name: str = "main") -> dict[str, Any]:
    return {"name": name, "image": "app:1", "resources": {"requests": amounts, "limits": amounts}}


def pod(
    *containers: dict[str, Any], phase: str = "", name: str = "p", uid: str = "u", **spec: Any
) -> Subject:
    fields: dict[str, Any] = {
        "metadata": {"name": name, "uid": uid},
        "spec": {"containers": list(containers), **spec},
    }
    if phase:
        fields["status"] = {"phase": phase}
    return Subject(PODS, fields)


def exactly(count: int = 1, class_name: str = GPU, mode: str = "ExactCount", **more: Any) -> dict[str, Any]:
    device = {"deviceClassName": class_name, "allocationMode": mode, **more}
    return device | ({"count": count} if mode == "ExactCount" else {})


def claim(*requests: dict[str, Any], name: str = "c", **metadata: Any) -> Subject:
    wanted = [{"name": f"r{at}", **one} for at, one in enumerate(requests)]
    return Subject(
        CLAIMS, {"metadata": {"name": name, **metadata}, "spec": {"devices": {"requests": wanted}}}
    )


def special(owner: Subject, *requests: dict[str, Any], name: str = "x", made: str = "t0") -> Subject:
    """The claim that a scheduler makes for the extended resources of a pod."""
    metadata = owner.fields["metadata"]
    reference = {"apiVersion": "v1", "kind": "Pod", "controller": True}
    return claim(
        *requests,
        name=name,
        creationTimestamp=made,
        annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
        ownerReferences=[{**reference, "name": metadata["name"], "uid": metadata["uid"]}],
    )


def plain(plural: str, group: str = "", **fields: Any) -> Subject:
    return Subject(Source(group, plural), {"metadata": {"name": "o"}, **fields})


def used(subject: Subject, context: Context | None = None) -> dict[str, str]:
    return {name: str(amount) for name, amount in usage(subject, context or Context()).items()}
