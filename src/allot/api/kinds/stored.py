"""Kinds that are kept for others: whoever acts on them is not part of this system.

Manifests of vendors name them, and must not fail for it. They are checked against their schema, stored,
listed and watched as any other; and every client that writes one is warned that nobody here heeds it. What
would be dangerous to ignore, a webhook that must agree to every write, is refused with the reason.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..field import FieldError, Path, forbidden
from ..kind import Fields, Kind, Rules, Version
from .reading import items

_MUST_AGREE = (
    "nobody is asked before a write is accepted, so this would be ignored;"
    " with failurePolicy Ignore it is stored"
)


@dataclass(frozen=True, slots=True)
class _Entry:
    group: str
    kind: str
    plural: str
    nobody: str  # what does not happen
    short_names: tuple[str, ...] = ()
    namespaced: bool = False
    has_status: bool = False
    version: str = "v1"
    categories: tuple[str, ...] = ()
    refuse: Callable[[Fields], list[FieldError]] = lambda fields: []


def _failing_webhooks(configuration: Fields) -> list[FieldError]:
    return [
        forbidden((Path("webhooks")[at]) / "failurePolicy", _MUST_AGREE)
        for at, one in enumerate(items(configuration, "webhooks"))
        if (one.get("failurePolicy") or "Fail") == "Fail"
    ]


def _failing_policy(policy: Fields) -> list[FieldError]:
    if ((policy.get("spec") or {}).get("failurePolicy") or "Fail") != "Fail":
        return []
    return [forbidden(Path("spec") / "failurePolicy", _MUST_AGREE)]


_ADMISSION, _NETWORKING = "admissionregistration.k8s.io", "networking.k8s.io"
_CERTIFICATES, _FLOWS = "certificates.k8s.io", "flowcontrol.apiserver.k8s.io"
_EXTENSIONS = ("api-extensions",)

_ENTRIES = (
    _Entry(
        _NETWORKING,
        "NetworkPolicy",
        "networkpolicies",
        "no traffic is restricted",
        ("netpol",),
        namespaced=True,
    ),
    _Entry(
        _NETWORKING,
        "Ingress",
        "ingresses",
        "no traffic is routed",
        ("ing",),
        namespaced=True,
        has_status=True,
    ),
    _Entry(_NETWORKING, "IngressClass", "ingressclasses", "no controller for it runs"),
    _Entry(_NETWORKING, "IPAddress", "ipaddresses", "no address is taken", ("ip",)),
    _Entry(_NETWORKING, "ServiceCIDR", "servicecidrs", "no address is taken from it", has_status=True),
    _Entry(
        "autoscaling",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        "nothing is scaled",
        ("hpa",),
        namespaced=True,
        has_status=True,
        version="v2",
        categories=("all",),
    ),
    _Entry(
        "scheduling.k8s.io",
        "PodGroup",
        "podgroups",
        "its pods are placed one by one",
        namespaced=True,
        has_status=True,
        version="v1beta1",
    ),
    _Entry(
        "scheduling.k8s.io",
        "Workload",
        "workloads",
        "its pods are placed one by one",
        namespaced=True,
        version="v1beta1",
    ),
    _Entry(
        _CERTIFICATES,
        "CertificateSigningRequest",
        "certificatesigningrequests",
        "nobody signs it (`allot credentials` makes credentials)",
        ("csr",),
        has_status=True,
    ),
    _Entry(_CERTIFICATES, "ClusterTrustBundle", "clustertrustbundles", "no pod gets it"),
    _Entry(
        _CERTIFICATES,
        "PodCertificateRequest",
        "podcertificaterequests",
        "nobody signs it",
        namespaced=True,
        has_status=True,
    ),
    _Entry(_FLOWS, "FlowSchema", "flowschemas", "fairness between users does not follow it", has_status=True),
    _Entry(
        _FLOWS,
        "PriorityLevelConfiguration",
        "prioritylevelconfigurations",
        "fairness between users does not follow it",
        has_status=True,
    ),
    _Entry(
        "storagemigration.k8s.io",
        "StorageVersionMigration",
        "storageversionmigrations",
        "nothing is migrated: everything is stored in one version",
        has_status=True,
    ),
    _Entry(
        _ADMISSION,
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        "no webhook is called",
        categories=_EXTENSIONS,
        refuse=_failing_webhooks,
    ),
    _Entry(
        _ADMISSION,
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        "no webhook is called",
        categories=_EXTENSIONS,
        refuse=_failing_webhooks,
    ),
    _Entry(
        _ADMISSION,
        "MutatingAdmissionPolicy",
        "mutatingadmissionpolicies",
        "nothing is changed by it",
        categories=_EXTENSIONS,
        refuse=_failing_policy,
    ),
    _Entry(
        _ADMISSION,
        "MutatingAdmissionPolicyBinding",
        "mutatingadmissionpolicybindings",
        "nothing is changed by it",
        categories=_EXTENSIONS,
    ),
)


def _kind(entry: _Entry) -> Kind:
    def warnings(new: Fields, old: Fields | None) -> list[str]:
        """Not for each write of a status."""
        if old is not None and _said(new) == _said(old):
            return []
        return [f"{entry.plural}.{entry.group} are stored and not acted on: {entry.nobody}"]

    schema_group = entry.group.partition(".")[0]
    return Kind(
        group=entry.group,
        kind=entry.kind,
        plural=entry.plural,
        singular=entry.kind.lower(),
        short_names=entry.short_names,
        categories=entry.categories,
        versions=(Version(entry.version, f"io.k8s.api.{schema_group}.{entry.version}.{entry.kind}"),),
        hub=entry.version,
        namespaced=entry.namespaced,
        has_status=entry.has_status,
        counts_generation=True,
        rules=Rules(
            validate_create=lambda new, context: entry.refuse(new),
            validate_update=lambda new, old, context: entry.refuse(new),
            warnings=warnings,
        ),
    )


def _said(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if name not in ("metadata", "status")}


KINDS = tuple(map(_kind, _ENTRIES))
