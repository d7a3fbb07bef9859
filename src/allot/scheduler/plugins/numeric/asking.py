"""A pod's pending numeric claims: their classes, their parameter objects, and what a model makes of them."""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

from allot.api import Object, classic, numeric
from allot.numeric import BadData, Expanded, Expansions, Registry, Want

from ...claim import ClaimInfo
from ...framework import LongWork, Rejection
from ...parameters import ParameterKind
from ...snapshot import Snapshot
from .copies import Copies

NAME = "NumericResources"
OFF: Final = Rejection(NAME, f"feature gate {numeric.limits.GATE} is off: numeric claims are not allocated")
EXPANDED_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class Asked:
    """One claim."""

    claim: ClaimInfo
    resource_class: classic.ResourceClass
    class_object: Object
    shareable: bool
    want: Want
    claim_parameters: Object
    class_parameters: Object | None


@dataclass(frozen=True, slots=True)
class NumericAsk:
    claims: tuple[Asked, ...]

    @property
    def wants(self) -> tuple[Want, ...]:
        return tuple(one.want for one in self.claims)

    @property
    def signature(self) -> Hashable:
        """What the models are asked, not who asks: claims of one template have parameters of equal value."""
        return tuple(one.want.key for one in self.claims)


class Asking:
    """Reads what pods ask for, and keeps what templates gave: once an object's version and a template."""

    def __init__(self) -> None:
        self._expanded: OrderedDict[Hashable, Expanded | str | LongWork] = OrderedDict()
        self._expansions = Expansions()
        self.copies = Copies()
        self.failures = 0  # of templates

    def read(self, claims: tuple[ClaimInfo, ...], snapshot: Snapshot) -> NumericAsk | Rejection | LongWork:
        found: list[Asked] = []
        for claim in claims:
            asked = self._one(claim, snapshot)
            if isinstance(asked, LongWork):
                return asked
            if isinstance(asked, str):
                return Rejection(NAME, f'resourceclaim "{claim.key.name}": {asked}')
            found.append(asked)
        return NumericAsk(tuple(found))

    def _one(self, claim: ClaimInfo, snapshot: Snapshot) -> Asked | str | LongWork:
        name, reference = claim.view.spec.resource_class_name, claim.view.spec.parameters_ref
        known, object = snapshot.resource_classes[name], snapshot.class_object(name)
        listed = known.numeric_parameters
        if reference is None:
            return f'resourceclass "{name}" needs parametersRef, of one of these kinds: {_named(listed)}'
        entry = next(
            (at for at in listed if (at.group, at.kind) == (reference.api_group, reference.kind)), None
        )
        if entry is None:
            kind = ParameterKind(reference.api_group, "", reference.kind)
            return f'resourceclass "{name}" takes no parameters of kind {kind}, only of: {_named(listed)}'
        kind = ParameterKind(entry.group, entry.version, entry.kind)
        parameters = snapshot.parameters.find(kind, claim.key.namespace, reference.name)
        if isinstance(parameters, str):
            return parameters
        own = _of_class(known, snapshot)
        if isinstance(own, str):
            return f'parameters of resourceclass "{name}": {own}'
        if (size := self.copies.size(object, parameters, own)) > numeric.limits.HANDLE_MAX:
            text = f"the allocation of the claim would keep its class and parameters, which have {size} bytes"
            return f"{text}; {numeric.limits.HANDLE_MAX} are the most there may be"
        expanded = self._expand(entry.cel_template, parameters, snapshot)
        if isinstance(expanded, LongWork):
            return expanded
        if isinstance(expanded, str):
            return f'resourceclass "{name}", numericParameters for {entry.kind}: {expanded}'
        key = known.driver_name, expanded.key
        want = Want(known.driver_name, expanded.model, expanded.want, key)
        return Asked(claim, known, object, entry.shareable, want, parameters, own)

    def _expand(self, template: str, object: Object, snapshot: Snapshot) -> Expanded | str | LongWork:
        key = template, object.api_version, object.uid, object.resource_version
        known = self._expanded.get(key)
        if known is None:
            known = self._keep(key, self._begun(template, object, snapshot.capacity.models))
        elif isinstance(known, LongWork) and isinstance(known.found, Expanded | str):
            known = self._keep(key, known.found)
        return known

    def _keep(self, key: Hashable, found: Expanded | str | LongWork) -> Expanded | str | LongWork:
        if isinstance(found, str):
            self.failures += 1
        self._expanded[key] = found
        while len(self._expanded) > EXPANDED_MAX:
            self._expanded.popitem(last=False)
        return found

    def _begun(self, template: str, object: Object, models: Registry) -> Expanded | str | LongWork:
        try:
            found = self._expansions.expand_at_once(template, object.fields, models)
        except BadData as why:
            return str(why)
        return found if found is not None else LongWork(NAME, lambda: _finished(template, object, models))


def _finished(template: str, object: Object, models: Registry) -> Expanded | str:
    """With nothing of its caller's: others go on meanwhile."""
    try:
        return Expansions().expand(template, object.fresh(), models)
    except BadData as why:
        return str(why)


def _named(listed: Sequence[numeric.NumericParameterType]) -> str:
    return ", ".join(f"{one.kind}.{one.group}" if one.group else one.kind for one in listed)


def _of_class(known: classic.ResourceClass, snapshot: Snapshot) -> Object | str | None:
    """The parameters of the class itself: configuration for the driver, which decides nothing here."""
    reference = known.parameters_ref
    if reference is None:
        return None
    kind = ParameterKind(reference.api_group, "", reference.kind)
    return snapshot.parameters.find(kind, reference.namespace, reference.name)
