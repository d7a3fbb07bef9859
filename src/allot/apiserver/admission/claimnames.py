"""A pod whose classic claims could not be made is refused: their names follow from its own.

A claim that is generated from a classic template is called `<pod>-<entry>`, which can be longer than a name
may be. Names of structured claims are shortened. Which of the two a template makes is only known while it
is there; of a template that comes later the claim controller says so in an event.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from allot.api import Path, classic, field, names, resource

from . import Attempt, Plugin

FindTemplate = Callable[[str, str], Awaitable[Mapping[str, Any] | None]]
"""The claim template of a namespace and a name."""


def names_of_classic_claims(find: FindTemplate) -> Plugin:
    def admit(attempt: Attempt) -> Awaitable[None] | None:
        new = attempt.new
        if attempt.operation != "CREATE" or attempt.subresource or new is None:
            return None
        entries = (new.get("spec") or {}).get("resourceClaims")
        if not entries:
            return None
        doubtful: list[tuple[int, str, str]] = []
        for at, entry in enumerate(entries):
            template = entry.get("resourceClaimTemplateName")
            name = classic.limits.claim_name(attempt.name, entry.get("name") or "")
            if template and len(name) > names.SUBDOMAIN_MAX:
                doubtful.append((at, template, name))
        return looked_up(attempt, doubtful) if doubtful else None

    async def looked_up(attempt: Attempt, doubtful: list[tuple[int, str, str]]) -> None:
        wrong = []
        for at, template, name in doubtful:
            found = await find(attempt.namespace, template)
            spec = ((found or {}).get("spec") or {}).get("spec") or {}
            if resource.shape.class_name_of(spec):
                path = (Path("spec") / "resourceClaims")[at] / "name"
                said = "; ".join(names.subdomain(name))
                wrong.append(field.invalid(path, name, f"no claim of the pod can have this name: {said}"))
        if wrong:
            raise field.refusal("", "Pod", attempt.name, wrong)

    return admit
