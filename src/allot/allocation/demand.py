"""What the claims of one pod ask for, read once and put to many nodes.

Everything that does not depend on a node happens here: gates, classes, request
forms, amounts, compiled selectors. Requests that want the same get the same
`Want`, so that whatever a node remembers about one serves all of them.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

from allot.api import Quantity, resource

from .answer import Refused
from .expression import Expression, derived, selector
from .features import Features

Form = resource.ExactDeviceRequest | resource.DeviceSubRequest

RESULTS_MAX = 32
"""Devices that one claim may be given."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One selector and whose it is, for the words of its errors."""

    owner: str  # "class NAME" or "claim NAME"
    index: int
    expression: Expression


class Want:
    """What a device must be like. Equal wants are the same object."""

    __slots__ = ("__weakref__", "capacity", "expressions", "tolerations")

    def __init__(
        self,
        expressions: tuple[Expression, ...],
        tolerations: tuple[resource.DeviceToleration, ...],
        capacity: tuple[tuple[str, Quantity], ...],
    ) -> None:
        self.expressions = expressions
        self.tolerations = tolerations
        self.capacity = dict(capacity)

    @classmethod
    def of(
        cls,
        expressions: tuple[Expression, ...],
        tolerations: tuple[resource.DeviceToleration, ...],
        capacity: tuple[tuple[str, Quantity], ...],
    ) -> "Want":
        # Amounts are equal however they are written, but a result keeps the writing.
        key = (expressions, tolerations, tuple((name, q.nano, q.format) for name, q in capacity))
        want = _wants.get(key)
        if want is None:
            want = _wants[key] = cls(expressions, tolerations, capacity)
        return want


_wants: WeakValueDictionary[object, Want] = WeakValueDictionary()


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """A rule over the devices of several requests of a claim."""

    index: int
    attribute: str
    distinct: bool  # pairwise different, rather than all the same
    requests: frozenset[str]  # "request" or "request/subrequest"; empty: every request


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """One way to satisfy a request: the request itself, or one of its subrequests."""

    claim: int
    request: int
    index: int
    name: str  # as results say it: "request" or "request/subrequest"
    label: str  # as errors say it: "claim NAME, request NAME"
    device_class: resource.DeviceClass
    clauses: tuple[Clause, ...]
    want: Want
    all_devices: bool
    count: int  # of devices; 0 with all_devices
    admin: bool
    tolerations: tuple[resource.DeviceToleration, ...]
    derived: Mapping[str, Expression]  # by attribute name
    constraints: tuple[int, ...]  # those of its claim that apply, in list order

    @property
    def signature(self) -> Hashable:
        """What it asks for, without any names."""
        derived = tuple(sorted((name, one.text) for name, one in self.derived.items()))
        return (self.want, self.all_devices, self.count, self.admin, derived, self.constraints)


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    name: str
    alternatives: tuple[Alternative, ...]  # in order of preference
    is_list: bool  # firstAvailable, even with a single entry


@dataclass(frozen=True, slots=True, eq=False)
class ClaimDemand:
    claim: resource.ResourceClaim
    label: str  # "namespace/name"
    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    claims: tuple[ClaimDemand, ...]
    features: Features
    derives: bool = False  # whether constraints may compare what is computed

    @property
    def signature(self) -> Hashable:
        """Equal for demands that fit on the same nodes, at the same cost: all that a ranking needs.

        Pods made from one template have claims of different names and one signature.
        """
        return (
            self.features,
            tuple(
                (
                    tuple(tuple(one.signature for one in request.alternatives) for request in claim.requests),
                    tuple((one.attribute, one.distinct) for one in claim.constraints),
                )
                for claim in self.claims
            ),
        )

    def alternatives(self) -> Iterator[Alternative]:
        for claim in self.claims:
            for request in claim.requests:
                yield from request.alternatives


def read_demand(
    claims: Sequence[resource.ResourceClaim],
    classes: Mapping[str, resource.DeviceClass],
    features: Features,
) -> Demand | Refused:
    """What the claims ask for, or why they can be satisfied nowhere."""
    reader = _Reader(classes, features)
    try:
        read = tuple(reader.claim(at, claim) for at, claim in enumerate(claims))
        return Demand(read, features, features.derived_attributes)
    except _Wrong as wrong:
        return Refused(str(wrong))


class _Wrong(Exception):
    pass


class _Reader:
    def __init__(self, classes: Mapping[str, resource.DeviceClass], features: Features) -> None:
        self._classes = classes
        self._features = features

    def claim(self, at: int, claim: resource.ResourceClaim) -> ClaimDemand:
        namespace = claim.metadata.namespace
        label = f"{namespace}/{claim.metadata.name}" if namespace else claim.metadata.name
        constraints = tuple(
            _constraint(label, index, one, self._features)
            for index, one in enumerate(claim.spec.devices.constraints)
        )
        requests = tuple(
            self._request(at, index, label, one, constraints)
            for index, one in enumerate(claim.spec.devices.requests)
        )
        return ClaimDemand(claim, label, requests, constraints)

    def _request(
        self,
        claim: int,
        index: int,
        label: str,
        request: resource.DeviceRequest,
        constraints: tuple[Constraint, ...],
    ) -> Request:
        where = f"claim {label}, request {request.name}"
        alternatives = []
        for sub, form in enumerate(self._forms(where, request)):
            name, here = request.name, where
            if isinstance(form, resource.DeviceSubRequest):
                name, here = f"{request.name}/{form.name}", f"claim {label}, subrequest {form.name}"
            applying = tuple(
                one.index
                for one in constraints
                if not one.requests or request.name in one.requests or name in one.requests
            )
            place = (claim, index, sub)
            alternatives.append(self._alternative(place, name, here, label, form, applying))
        return Request(request.name, tuple(alternatives), bool(request.first_available))

    def _forms(self, where: str, request: resource.DeviceRequest) -> tuple[Form, ...]:
        if request.first_available:
            if not self._features.prioritized_list:
                raise _Wrong(f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled")
            return request.first_available
        if request.exactly is None:
            raise _Wrong(f"{where}: neither exactly nor firstAvailable (unsupported request type?)")
        return (request.exactly,)

    def _alternative(
        self,
        place: tuple[int, int, int],
        name: str,
        where: str,
        claim: str,
        form: Form,
        constraints: tuple[int, ...],
    ) -> Alternative:
        admin_access = form.admin_access if isinstance(form, resource.ExactDeviceRequest) else None
        self._gates(where, form, admin_access)
        device_class = self._class(where, form.device_class_name)
        clauses = (
            *self._clauses(f"class {form.device_class_name}", device_class.spec.selectors),
            *self._clauses(f"claim {claim}", form.selectors, where),
        )
        if form.allocation_mode not in ("ExactCount", "All"):
            raise _Wrong(f"{where}: unsupported count mode {form.allocation_mode}")
        all_devices = form.allocation_mode == "All"
        capacity = tuple(sorted(_amounts(where, form.capacity).items()))
        return Alternative(
            *place,
            name=name,
            label=where,
            device_class=device_class,
            clauses=clauses,
            want=Want.of(tuple(one.expression for one in clauses), form.tolerations, capacity),
            all_devices=all_devices,
            count=0 if all_devices else form.count or 1,  # absent means one
            admin=bool(admin_access),
            tolerations=form.tolerations,
            derived={one.name: derived(one.expression, self._features) for one in form.derived_attributes},
            constraints=constraints,
        )

    def _gates(
        self,
        where: str,
        form: Form,
        admin_access: bool | None,
    ) -> None:
        if form.capacity is not None and not self._features.consumable_capacity:
            raise _Wrong(f"{where}: has capacity requests, but the DRAConsumableCapacity feature is disabled")
        if form.derived_attributes and not self._features.derived_attributes:
            raise _Wrong(f"{where}: has derived attributes, but the DRADerivedAttributes feature is disabled")
        if admin_access is not None and not self._features.admin_access:
            raise _Wrong(f"{where}: admin access is requested, but the feature is disabled")

    def _class(self, where: str, name: str) -> resource.DeviceClass:
        if not name:
            raise _Wrong(f"{where}: missing device class name (unsupported request type?)")
        found = self._classes.get(name)
        if found is None:
            raise _Wrong(f"{where}: could not retrieve device class {name}: not found")
        return found

    def _clauses(
        self, owner: str, selectors: tuple[resource.DeviceSelector, ...], where: str = ""
    ) -> Iterator[Clause]:
        for index, one in enumerate(selectors):
            if one.cel is None:
                raise _Wrong(
                    f"{where or owner}, selector #{index}: CEL expression empty (unsupported selector type?)"
                )
            yield Clause(owner, index, selector(one.cel.expression, self._features))


def _constraint(claim: str, index: int, one: resource.DeviceConstraint, features: Features) -> Constraint:
    attribute = one.match_attribute
    if attribute is None and features.knows_distinct:
        attribute = one.distinct_attribute
    if attribute is None:
        raise _Wrong(f"claim {claim}, constraint #{index}: empty constraint (unsupported constraint type?)")
    return Constraint(index, attribute, one.match_attribute is None, frozenset(one.requests))


def _amounts(where: str, capacity: resource.CapacityRequirements | None) -> dict[str, Quantity]:
    amounts = {}
    for name, text in capacity.requests.items() if capacity is not None else ():
        try:
            amounts[name] = Quantity.parse(text)
        except ValueError as error:
            raise _Wrong(f"{where}: capacity {name}: {error}") from None
    return amounts
