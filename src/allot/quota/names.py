"""What a quota may count, and whose objects count under each name.

count/<plural>.<group>                         objects of any kind (core: count/<plural>)
pods, services, secrets, ...                   objects of the kinds that had names of their own first
cpu, requests.cpu, limits.memory, ...          what unfinished pods ask for and may use
requests.<extended resource>                   by pods, and by claims of the class it stands for; also without
                                               the prefix, alike
<class of compute resources>                   what unfinished pods ask for under its name, bare or qualified;
                                               also with the prefix, alike
<class>.deviceclass.resource.k8s.io/devices    likewise: the other name of the same devices
resourceclaims                                 claims, whatever they ask for
<class>.resourceclass.node.k8s.io/resourceclaims    classic claims of a resource class
requests.storage, services.nodeports, ...      volumes and services
"""

from typing import Final, NamedTuple

from allot.api import compute, podresources, resource

REQUESTS: Final = "requests."
LIMITS: Final = "limits."
COUNT: Final = "count/"
HUGE_PAGES: Final = podresources.HUGE_PAGES
DEVICES_SUFFIX: Final = ".deviceclass.resource.k8s.io/devices"
CLAIMS_SUFFIX: Final = ".resourceclass.node.k8s.io/resourceclaims"
STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"
IMPLICIT: Final = REQUESTS + resource.limits.IMPLICIT_EXTENDED_RESOURCE_PREFIX

COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")


class Source(NamedTuple):
    """Whose objects count."""

    group: str
    plural: str

    @property
    def count_name(self) -> str:
        return f"{COUNT}{self.plural}.{self.group}" if self.group else f"{COUNT}{self.plural}"


PODS: Final = Source("", "pods")
CLAIMS: Final = Source("resource.k8s.io", "resourceclaims")
SERVICES: Final = Source("", "services")
VOLUME_CLAIMS: Final = Source("", "persistentvolumeclaims")

CLASSIC: Final = ("pods", "services", "secrets", "configmaps", "persistentvolumeclaims",
                  "replicationcontrollers", "resourcequotas")  # fmt: skip
"""Kinds of the core group that count under their own plural too."""


def sources(name: str) -> tuple[Source, ...]:
    """Whose objects count under `name`; empty for what nothing is counted under."""
    if name.startswith(COUNT):
        plural, _, group = name.removeprefix(COUNT).partition(".")
        return (Source(group, plural),) if plural else ()
    if name in CLASSIC:
        return (Source("", name),)
    if name == CLAIMS.plural or name.endswith(CLAIMS_SUFFIX):
        return (CLAIMS,)
    if name in ("services.nodeports", "services.loadbalancers"):
        return (SERVICES,)
    if name == "requests.storage" or STORAGE_CLASS in name:
        return (VOLUME_CLAIMS,)
    return _of_pods(name)


def is_shared_name(name: str) -> bool:
    """Whether pods and claims both count under `name`."""
    return is_extended_name(name) or name.endswith(DEVICES_SUFFIX)


def is_extended_name(name: str) -> bool:
    """Whether `name` is that of an extended resource, so that a class decides what counts under it."""
    if "/" not in name or name.startswith(COUNT) or name.endswith((DEVICES_SUFFIX, CLAIMS_SUFFIX)):
        return False
    return name.startswith(REQUESTS) or podresources.is_extended_resource(name)


def is_requested_name(name: str) -> bool:
    """Whether `name` is the one under which usage of an extended resource, or a class, is worked out."""
    return name.startswith(REQUESTS) and "/" in name


def alike(name: str) -> list[str]:
    """The other names that count the same as `requests.<extended resource>`."""
    resource_name = name.removeprefix(REQUESTS)
    class_name = compute.class_of(resource_name)
    return [resource_name, *([class_name, REQUESTS + class_name] if class_name else [])]


def _of_pods(name: str) -> tuple[Source, ...]:
    if is_shared_name(name):
        return (PODS, CLAIMS)
    bare = name.removeprefix(REQUESTS).removeprefix(LIMITS)
    if bare in COMPUTE or bare.startswith(HUGE_PAGES):
        return (PODS,)
    return (PODS,) if compute.class_of(name.removeprefix(REQUESTS)) else ()
