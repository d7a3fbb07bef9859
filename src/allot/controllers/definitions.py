"""What a CustomResourceDefinition promises: which objects there will be, and whether there will be any.

The server says that a definition is established a moment before it serves it. Whoever follows custom
resources waits for that moment, and must not wait for one that never comes.
"""

from allot.api import Object, meta


class Names(meta.View, frozen=True):
    kind: str = ""


class Version(meta.View, frozen=True):
    served: bool = False


class DefinitionSpec(meta.View, frozen=True):
    group: str = ""
    scope: str = ""
    names: Names = Names()
    versions: tuple[Version, ...] = ()


class DefinitionStatus(meta.View, frozen=True):
    conditions: tuple[meta.Condition, ...] = ()


class Definition(meta.View, frozen=True):
    metadata: meta.ObjectMeta = meta.ObjectMeta()
    spec: DefinitionSpec = DefinitionSpec()
    status: DefinitionStatus = DefinitionStatus()

    @property
    def is_to_be_served(self) -> bool:
        """Some are kept and serve no version."""
        established = any(c.type == "Established" and c.status == "True" for c in self.status.conditions)
        is_offered = any(one.served for one in self.spec.versions)
        return established and is_offered and not self.metadata.deletion_timestamp

    @property
    def is_namespaced(self) -> bool:
        return self.spec.scope == "Namespaced"


def definition_of(object: Object) -> Definition:
    return object.view(Definition)
