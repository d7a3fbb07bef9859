"""The few fields of a namespace that its end is about."""

from allot.api import meta

FINALIZER = "kubernetes"


class NamespaceSpec(meta.View, frozen=True):
    finalizers: tuple[str, ...] = ()


class NamespaceStatus(meta.View, frozen=True):
    conditions: tuple[meta.Condition, ...] = ()


class Namespace(meta.View, frozen=True):
    metadata: meta.ObjectMeta = meta.ObjectMeta()
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()

    @property
    def is_ours_to_empty(self) -> bool:
        return bool(self.metadata.deletion_timestamp) and FINALIZER in self.spec.finalizers
