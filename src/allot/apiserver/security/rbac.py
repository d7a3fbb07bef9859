"""Who may do what, by roles and bindings.

Where it sits
    The server tells it of every Role, ClusterRole and binding that is stored or
    deleted (`observe`); the `authorizer` asks it about every request.

What it promises
    RBAC1  The answer is that of the objects observed so far, whatever came in which order.
    RBAC2  A right exists only if some binding of one of the user's subjects reaches a rule
           that allows the action: cluster-wide, or in the action's namespace.
    RBAC3  A ClusterRole with an aggregation rule holds exactly the rules of the roles that
           its selectors choose, at once, whatever its stored rules say.

How it is fast
    Bindings are indexed by subject, so a question looks only at the bindings of
    the user. The answer is kept per user and shape of action (everything but the
    object's name) until any role or binding changes; what is kept is bounded.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from allot.api import Action, Decision, User

from ..requests.selectors import LabelSelector
from .aggregation import read_selectors
from .identities import service_account_of
from .rules import Rule, quoted

GROUP = "rbac.authorization.k8s.io"
_KEPT_MAX = 20_000


class Subject(NamedTuple):
    kind: str  # User, Group, ServiceAccount
    name: str
    namespace: str = ""  # of a service account

    def __str__(self) -> str:
        name = f"{self.name}/{self.namespace}" if self.namespace else self.name
        return f"{self.kind} {quoted(name)}"


class RoleRef(NamedTuple):
    kind: str  # Role, ClusterRole
    name: str


class Key(NamedTuple):
    """Of a role or a binding. Objects of the cluster have no namespace."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Role:
    rules: tuple[Rule, ...]
    labels: Mapping[str, str]
    selectors: tuple[LabelSelector, ...] = ()  # of an aggregation rule


@dataclass(frozen=True, slots=True)
class Binding:
    key: Key
    role: RoleRef
    subjects: frozenset[Subject]

    def __str__(self) -> str:
        if not self.key.namespace:
            return f"ClusterRoleBinding {quoted(self.key.name)}"
        return f"RoleBinding {quoted(f'{self.key.name}/{self.key.namespace}')}"


class Grant(NamedTuple):
    """One rule in a user's hands, and how it got there."""

    rule: Rule
    binding: Binding
    subject: Subject

    def decision(self) -> Decision:
        role = f"{self.binding.role.kind} {quoted(self.binding.role.name)}"
        return Decision(True, f"RBAC: allowed by {self.binding} of {role} to {self.subject}")


class RoleNotFound(NamedTuple):
    ref: RoleRef

    def __str__(self) -> str:
        return f"{self.ref.kind.lower()}.{GROUP} {quoted(self.ref.name)} not found"


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The answer for one user and shape of action, before the object's name is known."""

    for_every_name: Decision | None
    by_name: Mapping[str, Decision]
    otherwise: Decision


class Policy:
    OBSERVED = ("roles", "clusterroles", "rolebindings", "clusterrolebindings")

    def __init__(self) -> None:
        self.revision = 0
        self._roles: dict[Key, Role] = {}
        self._bindings: dict[Key, Binding] = {}
        self._by_subject: dict[Subject, dict[Key, Binding]] = {}
        self._aggregated: dict[str, tuple[Rule, ...]] = {}
        self._kept: dict[tuple[str, ...], _Verdict] = {}

    def observe(self, resource: str, namespace: str, name: str, fields: Mapping[str, Any] | None) -> None:
        """An object of this group is now `fields`, or is gone. Other resources are ignored."""
        key = Key(namespace, name)
        match resource:
            case "roles" | "clusterroles":
                self._replace_role(key, None if fields is None else _read_role(fields))
            case "rolebindings" | "clusterrolebindings":
                self._replace_binding(key, None if fields is None else _read_binding(key, fields))

    def authorize(self, user: User, action: Action) -> Decision:
        shape = (
            user.name, action.verb, action.group, action.resource, action.subresource, action.namespace,
            action.path, *user.groups,
        )  # fmt: skip
        verdict = self._kept.get(shape)
        if verdict is None:
            if len(self._kept) >= _KEPT_MAX:
                self._kept.clear()
            verdict = self._kept[shape] = self._verdict(user, action)
        if verdict.for_every_name is not None:
            return verdict.for_every_name
        return verdict.by_name.get(action.name, verdict.otherwise)

    def rules_for(self, user: User, namespace: str) -> list[Rule]:
        """Every rule the user has in a namespace, those for the whole cluster first."""
        return [found.rule for found in self._grants(user, namespace) if isinstance(found, Grant)]

    def unresolved(self, user: User, namespace: str) -> list[str]:
        """What kept the user's rules from being complete: bindings of roles that do not exist."""
        return [str(found) for found in self._grants(user, namespace) if isinstance(found, RoleNotFound)]

    def rules_of(self, ref: RoleRef, namespace: str) -> tuple[Rule, ...] | None:
        """What binding this role in `namespace` would give, or None if there is no such role."""
        if ref.kind == "Role":
            role = self._roles.get(Key(namespace, ref.name)) if namespace else None
            return None if role is None else role.rules
        role = self._roles.get(Key("", ref.name))
        if role is None:
            return None
        return self.aggregated(ref.name) if role.selectors else role.rules

    def with_roles(self, changes: Iterable[tuple[Key, Mapping[str, Any] | None]]) -> "Policy":
        """These roles as well, or no more. It has no bindings: what a role would give can be asked of it, and
        nobody has any rights by it."""
        changed = Policy()
        changed._roles = dict(self._roles)
        for key, fields in changes:
            changed._replace_role(key, None if fields is None else _read_role(fields))
        return changed

    def aggregated(self, name: str) -> tuple[Rule, ...]:
        """The rules that the cluster role `name` gathers, in order of the names of their roles."""
        known = self._aggregated.get(name)
        if known is None:
            gathered = [rule for source in sorted(self._sources(name)) for rule in self._roles[source].rules]
            known = self._aggregated[name] = tuple(dict.fromkeys(gathered))
        return known

    def _sources(self, name: str) -> set[Key]:
        """The plain roles behind an aggregating one; one aggregate may gather another."""
        sources: set[Key] = set()
        seen, ahead = {Key("", name)}, [Key("", name)]
        while ahead:
            selectors = self._roles[ahead.pop()].selectors
            for key, role in self._roles.items():
                if key.namespace or key in seen or not any(s.accepts(role.labels) for s in selectors):
                    continue
                seen.add(key)
                (ahead.append if role.selectors else sources.add)(key)
        return sources

    def _verdict(self, user: User, action: Action) -> _Verdict:
        by_name: dict[str, Decision] = {}
        problems: list[str] = []
        for found in self._grants(user, action.namespace):
            if isinstance(found, RoleNotFound):
                problems.append(str(found))
            elif found.rule.allows_shape(action):
                if action.path or not found.rule.names:
                    return _Verdict(found.decision(), {}, Decision(False))
                for name in found.rule.names:
                    by_name.setdefault(name, found.decision())
        return _Verdict(None, by_name, Decision(False, _joined(problems)))

    def _grants(self, user: User, namespace: str) -> Iterator[Grant | RoleNotFound]:
        """RBAC2. Sorted, so that the reason given does not depend on the order of events."""
        for scope in ("", namespace) if namespace else ("",):
            for subject in _subjects_of(user):
                bindings = self._by_subject.get(subject)
                if not bindings:
                    continue
                for binding in sorted(
                    (b for b in bindings.values() if b.key.namespace == scope), key=lambda b: b.key
                ):
                    rules = self.rules_of(binding.role, scope)
                    if rules is None:
                        yield RoleNotFound(binding.role)
                    else:
                        yield from (Grant(rule, binding, subject) for rule in rules)

    def _replace_role(self, key: Key, new: Role | None) -> None:
        if new is None:
            self._roles.pop(key, None)
        else:
            self._roles[key] = new
        self._changed()

    def _replace_binding(self, key: Key, new: Binding | None) -> None:
        old = self._bindings.pop(key, None)
        for subject in old.subjects if old else ():
            del self._by_subject[subject][key]
            if not self._by_subject[subject]:
                del self._by_subject[subject]
        if new is not None:
            self._bindings[key] = new
            for subject in new.subjects:
                self._by_subject.setdefault(subject, {})[key] = new
        self._changed()

    def _changed(self) -> None:
        self.revision += 1
        self._kept.clear()
        self._aggregated.clear()


def _subjects_of(user: User) -> list[Subject]:
    subjects = [Subject("User", user.name), *(Subject("Group", group) for group in user.groups)]
    account = service_account_of(user.name)
    if account is not None:
        subjects.append(Subject("ServiceAccount", account[1], account[0]))
    return subjects


def _joined(problems: list[str]) -> str:
    distinct = list(dict.fromkeys(problems))
    if not distinct:
        return ""
    return f"RBAC: {distinct[0]}" if len(distinct) == 1 else f"RBAC: [{', '.join(distinct)}]"


def _read_role(fields: Mapping[str, Any]) -> Role:
    return Role(
        rules=tuple(Rule.read(rule) for rule in fields.get("rules") or ()),
        labels=(fields.get("metadata") or {}).get("labels") or {},
        selectors=read_selectors(fields.get("aggregationRule")),
    )


def _read_binding(key: Key, fields: Mapping[str, Any]) -> Binding:
    return Binding(
        key, read_role_ref(fields), frozenset(_read_subject(s, key) for s in fields.get("subjects") or ())
    )


def read_role_ref(binding: Mapping[str, Any]) -> RoleRef:
    ref = binding.get("roleRef") or {}
    return RoleRef(ref.get("kind", ""), ref.get("name", ""))


def _read_subject(fields: Mapping[str, Any], key: Key) -> Subject:
    """A service account without a namespace is one of the binding's own."""
    kind = fields.get("kind", "")
    namespace = (fields.get("namespace") or key.namespace) if kind == "ServiceAccount" else ""
    return Subject(kind, fields.get("name", ""), namespace)
