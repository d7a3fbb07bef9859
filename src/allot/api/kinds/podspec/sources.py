"""`resourceClaims[].source`: how pods said it in the time of classic claims, put into today's words.

    resourceClaims: [{name: gpu, source: {resourceClaimTemplateName: t}}]      then
    resourceClaims: [{name: gpu, resourceClaimTemplateName: t}]                now, and what is stored

It is done to a body before anything else looks at it, so patches, applies and rules meet one spelling, and no
schema has the other. A strategic patch names the members that stay, and those are respelled with it: `kubectl
apply` sends that for a manifest of then, each time it is applied. An entry that says both, and not the same,
is refused; so are, with the right one, two spellings that KEP-3063 has in a story and nowhere in its API.
"""

from collections.abc import Callable
from typing import Any

from ... import errors
from ...kind import Fields

_MEMBERS = ("resourceClaimName", "resourceClaimTemplateName")
_RETAINED = "$retainKeys"


def respelled_at(*path: str) -> Callable[[Fields], None]:
    """Of a kind whose pod spec is at `path`, what is done to a body. Nothing in it has been checked yet."""

    def respell(fields: Fields) -> None:
        holder: Any = fields
        for step in path:
            holder = holder.get(step) if isinstance(holder, dict) else None
        entries = holder.get("resourceClaims") if isinstance(holder, dict) else None
        if not isinstance(entries, list) or not entries:
            return
        for entry in entries:
            if isinstance(entry, dict) and "source" in entry:
                _flatten(entry)
            elif isinstance(entry, dict) and isinstance(entry.get("template"), dict):
                raise errors.BadRequest(
                    f"resourceClaims has a `template` for {str(entry.get('name'))!r}: write "
                    "`resourceClaimTemplateName` beside its name, or within `source`"
                )
        for name in _plain_names(holder):
            raise errors.BadRequest(f"resources.claims has the text {name!r}: write `- name: {name}`")

    return respell


def _plain_names(spec: Fields) -> list[str]:
    try:
        return [
            use
            for kind in ("containers", "initContainers")
            for container in spec.get(kind) or ()
            for use in (container.get("resources") or {}).get("claims") or ()
            if type(use) is str
        ]
    except (AttributeError, TypeError):
        return []  # the schema has something to say about it


def _flatten(entry: Fields) -> None:
    source = entry["source"]
    if source is None:
        del entry["source"]
    if not isinstance(source, dict) or not source.keys() <= set(_MEMBERS):
        return  # it is no member that anybody knows
    for name, said in source.items():
        if entry.get(name, said) != said:
            raise errors.BadRequest(
                f"resourceClaims has {name} {entry[name]!s} for {str(entry.get('name'))!r}, and {said!s} "
                "in its `source`: leave `source` out"
            )
    entry.update(source)
    del entry["source"]
    kept = entry.get(_RETAINED)
    if isinstance(kept, list) and "source" in kept:
        entry[_RETAINED] = [*(name for name in kept if name != "source"), *source]
