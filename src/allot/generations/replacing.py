"""Classic claims and templates of a namespace, replaced by structured ones of the same names. Pure.

What they ask for cannot be changed in place, so each is deleted and made anew. A claim that is allocated or
reserved is in use and stays until it is not; claims that were made from a template live on without it, so a
template may go at any time: pods that come later change path.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from allot.api import Fields

from .manifests import convert
from .mapping import Mapping
from .podspecs import pod_spec

_PLURALS = {"ResourceClaim": "resourceclaims", "ResourceClaimTemplate": "resourceclaimtemplates"}


@dataclass(frozen=True, slots=True)
class Replacement:
    plural: str
    name: str
    manifest: Fields
    before: Fields  # as it can be created again
    uid: str
    version: str  # of what was looked at: if it is another one by now, it may be in use
    users: tuple[str, ...]  # pods and what makes pods that name it: they change path


@dataclass(frozen=True, slots=True)
class Replacing:
    replacements: tuple[Replacement, ...] = ()
    in_use: tuple[str, ...] = ()
    impossible: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def replacing(things: Iterable[Fields], users: Sequence[Fields], mapping: Mapping) -> Replacing:
    """`things` are claims and templates as v1alpha1 shows them; `users` pods and what makes pods."""
    replacements, in_use, impossible, notes = [], [], [], []
    for one in things:
        kind, name = str(one["kind"]), str(one["metadata"]["name"])
        if not _class_name(one) or one["metadata"].get("ownerReferences"):
            continue  # it is structured, or made for a pod
        status = one.get("status") or {}
        holders = [str(holder.get("name")) for holder in status.get("reservedFor") or ()]
        if status.get("allocation") or holders:
            whom = f", by {', '.join(holders)}" if holders else ""
            in_use.append(f"{kind} {name} is in use{whom}: it is replaced when it is not")
            continue
        found = convert([one], mapping)
        impossible += found.impossible
        notes += found.notes
        for manifest in found.documents:
            named = tuple(_users(users, kind, name))
            metadata = one["metadata"]
            replacements.append(
                Replacement(
                    _PLURALS[kind],
                    name,
                    manifest,
                    {**one, "metadata": {"name": name, **_kept(metadata)}, "status": {}},
                    str(metadata.get("uid") or ""),
                    str(metadata.get("resourceVersion") or ""),
                    named,
                )
            )
    return Replacing(tuple(replacements), tuple(in_use), tuple(impossible), tuple(notes))


def _kept(metadata: Fields) -> Fields:
    return {name: metadata[name] for name in ("labels", "annotations") if name in metadata}


def _class_name(one: Fields) -> str:
    spec = one.get("spec") or {}
    inner = spec.get("spec") or {} if one["kind"] == "ResourceClaimTemplate" else spec
    return str(inner.get("resourceClassName") or "")


def _users(users: Iterable[Fields], kind: str, name: str) -> Iterable[str]:
    member = "resourceClaimName" if kind == "ResourceClaim" else "resourceClaimTemplateName"
    for user in users:
        claims = (pod_spec(user) or {}).get("resourceClaims") or ()
        owned = any(owner.get("controller") for owner in user["metadata"].get("ownerReferences") or ())
        if not owned and any(one.get(member) == name for one in claims):
            yield f"{user['kind']} {user['metadata']['name']}"
