"""Which kinds are served, and under which paths.

Built-in kinds are known from the start; kinds of custom resources come and go.
`revision` grows with every change, so that discovery and OpenAPI can be kept
until then.
"""

from collections.abc import Iterable, Iterator

from allot.api import Kind, Version


class Served:
    """One kind in one version: what a request path names."""

    __slots__ = ("api_version", "is_hub", "kind", "version")

    def __init__(self, kind: Kind, version: Version) -> None:
        self.kind = kind
        self.version = version
        self.api_version = f"{kind.group}/{version.name}" if kind.group else version.name
        self.is_hub = version.name == kind.hub and kind.stored_as is None  # stored as this version shows it


class Registry:
    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.revision = 0
        self._kinds: dict[tuple[str, str], Kind] = {}
        self._served: dict[tuple[str, str, str], Served] = {}
        for kind in kinds:
            self.add(kind)

    def add(self, kind: Kind) -> None:
        """Serve `kind`, in place of an earlier one with the same group and plural."""
        self.remove(kind.group, kind.plural)
        self._kinds[kind.group, kind.plural] = kind
        for version in kind.versions:
            self._served[kind.group, version.name, kind.plural] = Served(kind, version)
        self.revision += 1

    def remove(self, group: str, plural: str) -> None:
        kind = self._kinds.pop((group, plural), None)
        if kind is not None:
            for version in kind.versions:
                del self._served[group, version.name, plural]
            self.revision += 1

    def served(self, group: str, version: str, plural: str) -> Served | None:
        return self._served.get((group, version, plural))

    def kind(self, group: str, plural: str) -> Kind | None:
        return self._kinds.get((group, plural))

    def kinds(self) -> Iterator[Kind]:
        return iter(list(self._kinds.values()))

    def by_kind(self, group: str, kind: str) -> Kind | None:
        return next((k for k in self._kinds.values() if k.group == group and k.kind == kind), None)
