"""The kinds that pods with devices live among, as table entries: one module or package a group.

`ALL` is what a server serves besides the resource, RBAC and custom kinds. Where
an entry has no rules, its schema says all there is to say.
"""

from . import (
    apps,
    batch,
    coordination,
    core,
    discovery,
    policies,
    policy,
    prepared,
    revocation,
    scheduling,
    storage,
    stored,
)
from .amounts import is_extended as is_extended_resource
from .core.pod_columns import summary as pod_summary
from .event import EVENT, NEW_EVENT
from .podspec import qos_class
from .policies import KINDS as POLICIES
from .prepared import PREPARED_CLAIMS
from .revocation import CREDENTIAL_REVOCATION

ALL = (
    *core.KINDS, EVENT, *apps.KINDS, *batch.KINDS, *coordination.KINDS, *discovery.KINDS, NEW_EVENT,
    *policy.KINDS, *prepared.KINDS, *revocation.KINDS, *scheduling.KINDS, *storage.KINDS, *stored.KINDS,
    *policies.KINDS,
)  # fmt: skip

__all__ = [
    "ALL",
    "CREDENTIAL_REVOCATION",
    "POLICIES",
    "PREPARED_CLAIMS",
    "is_extended_resource",
    "pod_summary",
    "qos_class",
]
