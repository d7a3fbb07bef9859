"""Claims, whatever they are for: what all of them share.

    resolving   a pod's claims, read once a cycle: which have devices, which want some
    plugin      ResourceClaims: whether the pod can be tried, which nodes its claims leave,
                its reservations, and what is given back where nothing fits

Which devices a claim gets is for the plugin of its kind, which finds the claims that want
some with `claims_in`. Upstream does all of it in DynamicResources, and that is the name
under which people know both (`plugins.known_as`): neither is there without the other.
"""

from .plugin import ResourceClaims, stays
from .resolving import PodClaims, claims_in

__all__ = ["PodClaims", "ResourceClaims", "claims_in", "stays"]
