"""The other objects that a pod needs on its node: what it names, and nothing else.

A node may read what its pods name, and a pod that a node makes for itself may
name nothing; both look here, so there is one answer to what a pod refers to.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from allot.api import podclaims, resource

Fields = Mapping[str, Any]

MIRROR_ANNOTATION = resource.pods.MIRROR_ANNOTATION


class Ref(NamedTuple):
    resource: str
    namespace: str
    name: str


_VOLUME_SECRETS = {
    "azureFile": "secretName",
    "cephfs": "secretRef",
    "cinder": "secretRef",
    "csi": "nodePublishSecretRef",
    "flexVolume": "secretRef",
    "iscsi": "secretRef",
    "rbd": "secretRef",
    "scaleIO": "secretRef",
    "secret": "secretName",
    "storageos": "secretRef",
}
"""Volume source -> its member that names a secret, as text or as a reference."""

_PERSISTENT_SECRETS = {
    "azureFile": ("secretName",),
    "cephfs": ("secretRef",),
    "cinder": ("secretRef",),
    "csi": ("nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"),
    "flexVolume": ("secretRef",),
    "iscsi": ("secretRef",),
    "rbd": ("secretRef",),
    "scaleIO": ("secretRef",),
    "storageos": ("secretRef",),
}


def references(pod: Fields) -> frozenset[Ref]:
    """Everything in the pod's namespace that its node must be able to reach."""
    namespace = (pod.get("metadata") or {}).get("namespace", "")
    found = {
        "secrets": set(secrets(pod)),
        "configmaps": set(config_maps(pod)),
        "persistentvolumeclaims": set(volume_claims(pod)),
        "resourceclaims": set(resource_claims(pod)),
        "serviceaccounts": {service_account(pod)},
    }
    return frozenset(
        Ref(resource, namespace, name) for resource, named in found.items() for name in named if name
    )


def service_account(pod: Fields) -> str:
    spec = pod.get("spec") or {}
    return str(spec.get("serviceAccountName") or spec.get("serviceAccount") or "")


def secrets(pod: Fields) -> Iterator[str]:
    spec = pod.get("spec") or {}
    for ref in spec.get("imagePullSecrets") or ():
        yield ref.get("name", "")
    yield from _from_environment(spec, "secretRef", "secretKeyRef")
    for volume in spec.get("volumes") or ():
        for source, member in _VOLUME_SECRETS.items():
            yield from _names((volume.get(source) or {}).get(member))
        for projected in (volume.get("projected") or {}).get("sources") or ():
            yield from _names(projected.get("secret"))


def config_maps(pod: Fields) -> Iterator[str]:
    spec = pod.get("spec") or {}
    yield from _from_environment(spec, "configMapRef", "configMapKeyRef")
    for volume in spec.get("volumes") or ():
        yield from _names(volume.get("configMap"))
        for projected in (volume.get("projected") or {}).get("sources") or ():
            yield from _names(projected.get("configMap"))


def volume_claims(pod: Fields) -> Iterator[str]:
    pod_name = (pod.get("metadata") or {}).get("name", "")
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        yield (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
        if volume.get("ephemeral"):
            yield f"{pod_name}-{volume.get('name', '')}"


def resource_claims(pod: Fields) -> tuple[str, ...]:
    claims = (pod.get("spec") or {}).get("resourceClaims")
    if not claims and not (pod.get("status") or {}).get("extendedResourceClaimStatus"):
        return ()
    return podclaims.names(podclaims.pod_of(pod))


def token_audiences(pod: Fields) -> Iterator[str]:
    """The audiences of the tokens that the pod mounts; "" is the API server's own."""
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        for projected in (volume.get("projected") or {}).get("sources") or ():
            if projected.get("serviceAccountToken") is not None:
                yield projected["serviceAccountToken"].get("audience", "")


def names_trust_bundles(pod: Fields) -> bool:
    return _projects(pod, "clusterTrustBundle")


def names_tokens(pod: Fields) -> bool:
    return _projects(pod, "serviceAccountToken")


def _projects(pod: Fields, source: str) -> bool:
    return any(
        projected.get(source) is not None
        for volume in (pod.get("spec") or {}).get("volumes") or ()
        for projected in (volume.get("projected") or {}).get("sources") or ()
    )


def persistent_volume(volume: Fields) -> tuple[Ref | None, frozenset[Ref]]:
    """The claim that a persistent volume is bound to, and the secrets needed to mount it."""
    spec = volume.get("spec") or {}
    claim = spec.get("claimRef") or {}
    namespace = claim.get("namespace", "")
    bound = Ref("persistentvolumeclaims", namespace, claim["name"]) if claim.get("name") else None
    found: set[Ref] = set()
    for source, members in _PERSISTENT_SECRETS.items():
        attributes = spec.get(source) or {}
        for value in (attributes.get(member) for member in members):
            where = attributes.get("secretNamespace") if isinstance(value, str) else None
            if isinstance(value, Mapping):
                where = value.get("namespace")
            found.update(Ref("secrets", where or namespace, name) for name in _names(value) if name)
    return bound, frozenset(found)


def _from_environment(spec: Fields, whole: str, key: str) -> Iterator[str]:
    for part in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(part) or ():
            for source in container.get("envFrom") or ():
                yield from _names(source.get(whole))
            for variable in container.get("env") or ():
                if source := variable.get("valueFrom"):  # most of them say their value themselves
                    yield from _names(source.get(key))


def _names(value: Any) -> Iterator[str]:
    """The name in a plain string or in a reference to an object."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield value.get("name") or ""
