"""One rule of a role: what it allows, and what it covers.

A rule is either about resources (groups, resources, names) or about paths of
the server (urls). `allows` asks it about one action; `missing` asks a whole set
of rules whether it holds everything that another set would give away, which is
how the server refuses escalation.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from allot.api import Action

ANY = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> "Rule":
        """The rule as an API object spells it. A null list reads as an empty one."""
        return cls(
            verbs=tuple(fields.get("verbs") or ()),
            groups=tuple(fields.get("apiGroups") or ()),
            resources=tuple(fields.get("resources") or ()),
            names=tuple(fields.get("resourceNames") or ()),
            urls=tuple(fields.get("nonResourceURLs") or ()),
        )

    def fields(self) -> dict[str, Any]:
        spelled = {
            "verbs": self.verbs,
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.urls,
        }
        return {name: list(values) for name, values in spelled.items() if values or name == "verbs"}

    def allows(self, action: Action) -> bool:
        if action.path:
            return self.allows_shape(action)
        return self.allows_shape(action) and (not self.names or action.name in self.names)

    def allows_shape(self, action: Action) -> bool:
        """Everything but the object's name fits."""
        if ANY not in self.verbs and action.verb not in self.verbs:
            return False
        if action.path:
            return any(_url_covers(url, action.path) for url in self.urls)
        if ANY not in self.groups and action.group not in self.groups:
            return False
        return any(_resource_fits(have, action.resource, action.subresource) for have in self.resources)

    def __str__(self) -> str:
        parts = [
            f"{title}:[{' '.join(quoted(value) for value in values)}]"
            for title, values in (
                ("APIGroups", self.groups),
                ("Resources", self.resources),
                ("NonResourceURLs", self.urls),
                ("ResourceNames", self.names),
                ("Verbs", self.verbs),
            )
            if values
        ]
        return "{" + ", ".join(parts) + "}"


EVERYTHING = (
    Rule(verbs=(ANY,), groups=(ANY,), resources=(ANY,)),
    Rule(verbs=(ANY,), urls=(ANY,)),
)


def quoted(text: str) -> str:
    """`text` in double quotes, as the API's error texts quote."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def missing(held: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """The parts of `wanted` that `held` does not cover, each with one verb and one target."""
    return [part for rule in wanted for part in _parts(rule) if not any(_covers(have, part) for have in held)]


def compact(parts: Iterable[Rule]) -> list[Rule]:
    """Rules about the same thing joined into one with all their verbs, in order of appearance."""
    joined: dict[Rule, list[str]] = {}
    for part in parts:
        verbs = joined.setdefault(replace(part, verbs=()), [])
        verbs.extend(verb for verb in part.verbs if verb not in verbs)
    return [replace(target, verbs=tuple(verbs)) for target, verbs in joined.items()]


def _parts(rule: Rule) -> Iterator[Rule]:
    for verb in rule.verbs:
        for group in rule.groups:
            for resource in rule.resources:
                for name in rule.names or (None,):
                    names = () if name is None else (name,)
                    yield Rule((verb,), (group,), (resource,), names)
        for url in rule.urls:
            yield Rule((verb,), urls=(url,))


def _covers(have: Rule, part: Rule) -> bool:
    """`part` has one verb and one target."""
    if ANY not in have.verbs and part.verbs[0] not in have.verbs:
        return False
    if part.urls:
        return any(_url_covers(url, part.urls[0]) for url in have.urls)
    if ANY not in have.groups and part.groups[0] not in have.groups:
        return False
    resource, _, subresource = part.resources[0].partition("/")
    if not any(_resource_fits(mine, resource, subresource) for mine in have.resources):
        return False
    return not have.names or (bool(part.names) and part.names[0] in have.names)


def _resource_fits(have: str, resource: str, subresource: str) -> bool:
    """`*` is everything, `pods/log` one subresource, `*/scale` that subresource of everything."""
    if have == ANY:
        return True
    if not subresource:
        return have == resource
    return have in (f"{resource}/{subresource}", f"*/{subresource}")


def _url_covers(have: str, path: str) -> bool:
    """`/healthz` is itself, `/healthz/*` everything below, `*` everything."""
    if have == path:
        return True
    return have.endswith(ANY) and path.startswith(have.rstrip(ANY))
