"""Q1: what is used is at most what was allowed when it was admitted; at rest the count is right.

Counted here from the objects, for the names that made-up worlds use. A claim counts under
the extended resource name of its class: the one that was in force when it was admitted, or
the one in force now. Only what both counts call too much is called wrong on arrival,
because the controller counts anew after a change of names, and not at once.
"""

from collections.abc import Iterator, Mapping

from ..recording import Seen
from .reading import Fields, is_finished, name_of, place_of
from .standing import Standing

_DEVICES = ".deviceclass.resource.k8s.io/devices"
_REQUESTS = "requests."
Names = Mapping[str, str]  # device class -> extended resource


class QuotaKept:
    follows = ("resourcequotas", "pods", "resourceclaims", "configmaps", "deviceclasses")

    def __init__(self) -> None:
        self._now = Standing(*self.follows)
        self._names_then: dict[str, Names] = {}  # by uid of the claim

    def see(self, seen: Seen) -> Iterator[str]:
        self._now.see(seen)
        if seen.type != "ADDED" or seen.resource in ("resourcequotas", "deviceclasses"):
            return
        names = self._names_now()
        if seen.resource == "resourceclaims":
            self._names_then[seen.object.uid] = names
        for quota in self._now.all("resourcequotas"):
            if place_of(quota)[0] != seen.object.namespace:
                continue
            for name, limit in ((quota.get("status") or {}).get("hard") or {}).items():
                if not _share(name, seen.resource, seen.fields, names):
                    continue
                used = min(self._used(name, seen.object.namespace, then) for then in (True, False))
                if used > int(limit):
                    what = f"{seen.resource} {seen.object.name}"
                    yield f"Q1: with {what} {used} of {name} are used, and {limit} were allowed"

    def rest(self) -> Iterator[str]:
        for quota in self._now.all("resourcequotas"):
            namespace, status = place_of(quota)[0], quota.get("status") or {}
            for name, limit in quota["spec"]["hard"].items():
                used = self._used(name, namespace, False)
                said = (status.get("used") or {}).get(name)
                if said is None or int(said) != used:
                    yield f"Q1: quota {name_of(quota)} says {said} of {name}, and {used} are used"
                if (status.get("hard") or {}).get(name) != limit:
                    yield f"Q1: quota {name_of(quota)} does not say that {limit} of {name} are allowed"

    def _names_now(self) -> Names:
        classes = ((one, one["spec"].get("extendedResourceName")) for one in self._now.all("deviceclasses"))
        return {name_of(one): extended for one, extended in classes if extended}

    def _used(self, name: str, namespace: str, then: bool) -> int:
        now = self._names_now()
        total = 0
        for resource in ("pods", "resourceclaims", "configmaps"):
            for one in self._now.all(resource):
                if place_of(one)[0] == namespace:
                    names = self._names_then.get(one["metadata"]["uid"], now) if then else now
                    total += _share(name, resource, one, names)
        return total


def _share(name: str, resource: str, fields: Fields, names: Names) -> int:
    """How much one object uses of what has this name in a quota."""
    if name.startswith("count/"):
        return int(name.removeprefix("count/").partition(".")[0] == resource)
    if name == resource:
        return int(resource != "pods" or not is_finished(fields))
    if name.endswith(_DEVICES) and resource == "resourceclaims":
        return _devices(fields, name.removesuffix(_DEVICES))
    if not name.startswith(_REQUESTS):
        return 0
    extended = name.removeprefix(_REQUESTS)
    if resource == "pods" and not is_finished(fields):
        containers = fields["spec"]["containers"]
        amounts = ((one.get("resources") or {}).get("requests") or {} for one in containers)
        return sum(int(amount.get(extended, 0)) for amount in amounts)
    if resource == "resourceclaims":
        return sum(_devices(fields, one) for one, known_as in names.items() if known_as == extended)
    return 0


def _devices(claim: Fields, of_class: str) -> int:
    exact = (one.get("exactly") or {} for one in claim["spec"]["devices"]["requests"])
    return sum(one.get("count", 1) for one in exact if one.get("deviceClassName") == of_class)
