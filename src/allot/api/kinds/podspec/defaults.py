"""What a pod means when it does not say.

`default_spec` is for the spec of a pod and for the spec inside a template;
`default_pod` adds what only a pod gets. Both may run on an object that has been
defaulted before and then change nothing.
"""

from collections.abc import Mapping
from typing import Any

from ...kind import Fields
from ..reading import default, items, obj, section
from .images import pull_policy

FILE_MODE = 0o644
TOKEN_EXPIRATION_S = 3600
CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
_ASSUMING = frozenset(("ports", "env", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"))
"""Fields of a container that mean more than they say."""


def default_pod(pod: Fields) -> None:
    spec = section(pod, "spec")
    default_spec(spec)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    on_host = spec.get("hostNetwork")
    for container in [*items(spec, "containers"), *items(spec, "initContainers")]:
        _requests_from_limits(container)
        if on_host:
            for port in items(container, "ports"):
                if not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort", 0)
    _pod_requests_from_limits(spec)


def default_template(template: Fields) -> None:
    default_spec(section(template, "spec"))


def default_spec(spec: Fields) -> None:
    for name in CONTAINER_LISTS:
        for container in spec.get(name) or ():
            default_container(container)
    for volume in spec.get("volumes") or ():
        default_volume(volume)
    default(spec, "dnsPolicy", "ClusterFirst")
    default(spec, "restartPolicy", "Always")
    default(spec, "schedulerName", "default-scheduler")
    section(spec, "securityContext")
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    _mirror_service_account(spec)


def _mirror_service_account(spec: Fields) -> None:
    """The deprecated name of the field shows what the new one says."""
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def default_container(container: Fields) -> None:
    default(container, "terminationMessagePath", "/dev/termination-log")
    default(container, "terminationMessagePolicy", "File")
    default(container, "imagePullPolicy", pull_policy(container.get("image") or ""))
    section(container, "resources")
    if _ASSUMING.isdisjoint(container):
        return
    for port in items(container, "ports"):
        default(port, "protocol", "TCP")
    for variable in items(container, "env"):
        source = variable.get("valueFrom")
        if not source:
            continue
        if source.get("fieldRef") is not None:
            default(source["fieldRef"], "apiVersion", "v1")
        if source.get("fileKeyRef") is not None and source["fileKeyRef"].get("optional") is None:
            source["fileKeyRef"]["optional"] = False
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(name) is not None:
            default_probe(container[name])
    if lifecycle := container.get("lifecycle"):
        for name in ("postStart", "preStop"):
            default_http_get(obj(lifecycle, name).get("httpGet"))


def default_probe(probe: Fields) -> None:
    for name, value in (
        ("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3),
    ):  # fmt: skip
        if not probe.get(name):
            probe[name] = value
    default_http_get(probe.get("httpGet"))
    grpc = probe.get("grpc")
    if grpc is not None and grpc.get("service") is None:
        grpc["service"] = ""


def default_http_get(action: Fields | None) -> None:
    if action is not None:
        default(action, "path", "/")
        default(action, "scheme", "HTTP")


def default_volume(volume: Fields) -> None:
    sources = [name for name, value in volume.items() if name != "name" and value is not None]
    if not sources:
        volume["emptyDir"] = {}
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        source = volume.get(name)
        if source is not None and source.get("defaultMode") is None:
            source["defaultMode"] = FILE_MODE
    _default_downward_items(obj(volume, "downwardAPI"))
    for projection in items(volume, "projected", "sources"):
        _default_downward_items(obj(projection, "downwardAPI"))
        token = projection.get("serviceAccountToken")
        if token is not None and token.get("expirationSeconds") is None:
            token["expirationSeconds"] = TOKEN_EXPIRATION_S
    _default_special_volume(volume)


def _default_downward_items(source: Mapping[str, Any]) -> None:
    for item in items(source, "items"):
        if item.get("fieldRef") is not None:
            default(item["fieldRef"], "apiVersion", "v1")


def _default_special_volume(volume: Fields) -> None:
    if (host_path := volume.get("hostPath")) is not None and host_path.get("type") is None:
        host_path["type"] = ""
    if (image := volume.get("image")) is not None:
        default(image, "pullPolicy", pull_policy(image.get("reference") or ""))
    if (template := obj(volume, "ephemeral").get("volumeClaimTemplate")) is not None:
        default(section(template, "spec"), "volumeMode", "Filesystem")
    if (iscsi := volume.get("iscsi")) is not None:
        default(iscsi, "iscsiInterface", "default")


def _requests_from_limits(container: Fields) -> None:
    """A limit without a request is also the request."""
    resources = obj(container, "resources")
    limits = resources.get("limits")
    if not limits:
        return
    requests = resources.get("requests") or {}
    missing = {name: amount for name, amount in limits.items() if name not in requests}
    if missing:
        resources["requests"] = {**requests, **missing}


def _pod_requests_from_limits(spec: Fields) -> None:
    """A pod-level limit without a request is also the request, unless containers ask for that
    resource themselves: then the pod's request is what they add up to, which `qos` reads."""
    resources = spec.get("resources")
    if not resources:
        return
    asked = {
        name
        for container in [*items(spec, "containers"), *items(spec, "initContainers")]
        for name in obj(container, "resources", "requests")
    }
    requests = obj(resources, "requests")
    missing = {
        name: amount
        for name, amount in obj(resources, "limits").items()
        if name not in requests and name not in asked
    }
    if missing:
        resources["requests"] = {**requests, **missing}
