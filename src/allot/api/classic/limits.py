"""The numbers and well-known strings of classic claims. They may grow in later versions, never shrink."""

from typing import Final

from ..resource.limits import GROUP

VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
GATE: Final = "DRAControlPlaneController"

RESERVED_FOR_MAX: Final = 32
RESOURCE_HANDLE_MAX: Final = 16 * 1024  # bytes
NODES_MAX: Final = 256
"""Of each node list in a PodScheduling."""
NODES_PROPOSED_MAX: Final = 128
"""How many our scheduler proposes: servers of the time took no more."""
PARAMETERS_NAME_MAX: Final = 253

FINALIZER_SUFFIX: Final = "/deletion-protection"
"""After the name of a driver, the finalizer with which it protects what it allocates."""


def finalizer_of(driver: str) -> str:
    return f"{driver}{FINALIZER_SUFFIX}"


def claim_name(pod: str, entry: str) -> str:
    """Of a claim that is generated for a pod: everybody can compute it, and somebody else's claim that has
    it is in the way."""
    return f"{pod}-{entry}"
