"""Resources that Kubernetes names itself, without a domain: what nobody else may call something."""

from typing import Final

HUGE_PAGES: Final = "hugepages-"
CONTAINER: Final = ("cpu", "memory", "ephemeral-storage")
WHOLE: Final = (
    "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps",
    "persistentvolumeclaims", "resourceclaims", "services.nodeports", "services.loadbalancers",
)  # fmt: skip
"""Counted in whole things."""

_PREFIXES: Final = (HUGE_PAGES, "requests.", "limits.", "count/")
_NAMES: Final = frozenset((*CONTAINER, "storage", *WHOLE))


def is_standard(resource: str) -> bool:
    return resource in _NAMES or resource.startswith(_PREFIXES)
