"""Q1: what is used is at most what was allowed when it was admitted; at rest the count is right.

What is allowed is what a quota's spec says: a changed limit holds for the next write, whether or not
the controller has told of it in the status (docs/differences.md).

Counted here from the objects, for the names that made-up worlds use. Devices of one class
are counted alike under each of its names: by claims that ask for them, and by pods that
ask for the extended resource; a claim that was made for the extended resources of a pod
pays what the pod has not paid. The extended name of a class is the one that was in force
when an object was admitted, or the one in force now. Only what both counts call too much
is called wrong on arrival, because the controller counts anew after a change of names, and
not at once.
"""

from collections.abc import Iterator, Mapping

from ..recording import Seen
from .live import LiveObjects
from .reading import Fields, controller, is_finished, name_of, place_of

_DEVICES = ".deviceclass.resource.k8s.io/devices"
_REQUESTS = "requests."
_IMPLICIT = "deviceclass.resource.kubernetes.io/"
_FOR_EXTENDED = "resource.kubernetes.io/extended-resource-claim"
Names = Mapping[str, str]  # device class -> extended resource


class QuotaKept:
    follows = ("resourcequotas", "pods", "resourceclaims", "configmaps", "deviceclasses")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)
        self._names_then: dict[str, Names] = {}  # by uid of what was admitted

    def see(self, seen: Seen) -> Iterator[str]:
        self._now.see(seen)
        if seen.type != "ADDED" or seen.resource in ("resourcequotas", "deviceclasses"):
            return
        names = self._names_then[seen.object.uid] = self._names_now()
        for quota in self._now.all("resourcequotas"):
            if place_of(quota)[0] != seen.object.namespace:
                continue
            for name, limit in quota["spec"]["hard"].items():
                if not self._share(name, seen.resource, seen.fields, names):
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
                    total += self._share(name, resource, one, names)
        return total

    def _share(self, name: str, resource: str, fields: Fields, names: Names) -> int:
        """How much one object uses of what has this name in a quota."""
        if name.startswith("count/"):
            return int(name.removeprefix("count/").partition(".")[0] == resource)
        if name == resource:
            return int(resource != "pods" or not is_finished(fields))
        if resource == "configmaps":
            return 0
        if name.endswith(_DEVICES):
            return self._of_class(name.removesuffix(_DEVICES), resource, fields, names)
        extended = name.removeprefix(_REQUESTS)
        if extended == name:
            return 0
        classes = [one for one, known_as in names.items() if known_as == extended]
        if not classes:
            return _asked(fields, extended) if resource == "pods" else 0
        return sum(self._of_class(one, resource, fields, names) for one in classes)

    def _of_class(self, of_class: str, resource: str, fields: Fields, names: Names) -> int:
        """Devices of a class, whatever they were asked for as."""
        if resource == "pods":
            return _asked(fields, names.get(of_class, "")) + _asked(fields, _IMPLICIT + of_class)
        wanted = _devices(fields, of_class)
        if not (fields["metadata"].get("annotations") or {}).get(_FOR_EXTENDED):
            return wanted
        pod = self._now.get("pods", controller(fields))
        return max(0, wanted - (self._of_class(of_class, "pods", pod, names) if pod is not None else 0))


def _asked(pod: Fields, extended: str) -> int:
    """How much of an extended resource a pod asks for that has not finished."""
    if is_finished(pod):
        return 0
    amounts = ((one.get("resources") or {}).get("requests") or {} for one in pod["spec"]["containers"])
    return sum(int(amount.get(extended, 0)) for amount in amounts)


def _devices(claim: Fields, of_class: str) -> int:
    exact = (one.get("exactly") or {} for one in claim["spec"]["devices"]["requests"])
    return sum(one.get("count", 1) for one in exact if one.get("deviceClassName") == of_class)
