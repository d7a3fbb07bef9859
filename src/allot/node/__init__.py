"""The life of a pod on a node, whatever the node is made of.

admission   who fits on a node, and who is refused
claims      N1: the claims of a pod, and whether they are there for it
holding     N2: what each node has prepared, and what it has said about it
renewals    whose lease is due
"""

from .admission import Admission, Refusal
from .claims import ClaimRef, Lookup, NotReady, claims_of, known_claims, require_ready
from .holding import Holding
from .renewals import Renewals

__all__ = [
    "Admission",
    "ClaimRef",
    "Holding",
    "Lookup",
    "NotReady",
    "Refusal",
    "Renewals",
    "claims_of",
    "known_claims",
    "require_ready",
]
