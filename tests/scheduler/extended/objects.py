"""Small device classes and pods; every argument has a default."""

from typing import Any

from allot.api import core, meta, resource

GPU = "gpu.example.com"
IMPLICIT = f"deviceclass.resource.kubernetes.io/{GPU}"
EXTENDED = "example.com/gpu"


def device_class(
    name: str = GPU, extended: str | None = None, created: int = 0, expression: str = "true", uid: str = ""
) -> resource.DeviceClass:
    fields: dict[str, Any] = {
        "metadata": {
            "name": name,
            "uid": uid or f"{name}-of-{created}",
            "creationTimestamp": f"2026-01-01T00:00:{created:02}Z",
        },
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }
    if extended is not None:
        fields["spec"]["extendedResourceName"] = extended
    return meta.view(resource.DeviceClass, fields)


def container(name: str = "main", keeps_running: bool = False, **requests: int | str) -> dict[str, Any]:
    """`gpu=2` asks for two of example.com/gpu, `implicit` for the class by its own name."""
    names = {"implicit": IMPLICIT, "cpu": "cpu", "memory": "memory"}
    written = {names.get(key, f"example.com/{key}"): str(amount) for key, amount in requests.items()}
    policy = {"restartPolicy": "Always"} if keeps_running else {}
    return {"name": name, "resources": {"requests": written, "limits": written}, **policy}


def sidecar(name: str = "sidecar", **requests: int | str) -> dict[str, Any]:
    return container(name, keeps_running=True, **requests)


def pod(
    *containers: dict[str, Any], init: Any = (), name: str = "p", uid: str = "u", **spec: Any
) -> core.Pod:
    fields = {
        "metadata": {"name": name, "namespace": "default", "uid": uid},
        "spec": {"containers": list(containers), "initContainers": list(init), **spec},
    }
    return meta.view(core.Pod, fields)
