"""The names that devices of one class are counted under (QUOTA2).

    <class>.deviceclass.resource.k8s.io/devices             what claims ask for
    requests.deviceclass.resource.kubernetes.io/<class>     as an extended resource without a name
    requests.<extended resource>                            under the name that the class has

Whoever asks for a device under one of them takes it from all: a claim, and a pod that asks for
the extended resource, whether a driver or a device plugin will serve it. KEP-5004, "Resource Quota".
Where several classes have one extended name, it is that of the class that serves it, and of no other.
"""

from collections.abc import Iterable, Mapping

from allot.api import resource

from .amounts import ZERO, Usage
from .names import DEVICES_SUFFIX, IMPLICIT, REQUESTS

ExtendedNames = Mapping[str, str] | None
"""Device class -> the extended resource that it serves. None where pods cannot ask for devices so."""


def extended_names(classes: Iterable[resource.DeviceClass]) -> dict[str, str]:
    """Of all classes there are, each name with the class that serves it."""
    contenders: dict[str, list[resource.DeviceClass]] = {}
    for one in classes:
        if name := one.spec.extended_resource_name:
            contenders.setdefault(name, []).append(one)
    winners = ((name, resource.serving(rivals)) for name, rivals in contenders.items())
    return {one.metadata.name: name for name, one in winners if one is not None}


def names_of(class_name: str, extended_names: ExtendedNames) -> list[str]:
    names = [class_name + DEVICES_SUFFIX]
    if extended_names is None:
        return names
    names.append(IMPLICIT + class_name)
    if extended := extended_names.get(class_name):
        names.append(REQUESTS + extended)
    return names


def in_all_views(usage: Usage, extended_names: ExtendedNames) -> Usage:
    """What a pod requests, under the other names of those devices too."""
    found = dict(usage)
    for name, amount in usage.items():
        class_name = _class_of(name, extended_names)
        for view in names_of(class_name, extended_names) if class_name else ():
            if view != name:
                found[view] = found.get(view, ZERO) + amount
    return found


def _class_of(name: str, extended_names: ExtendedNames) -> str:
    """The class that a requested resource stands for; "" where there is none."""
    if extended_names is None:
        return ""
    if name.startswith(IMPLICIT):
        return name.removeprefix(IMPLICIT)
    requested = name.removeprefix(REQUESTS)
    if requested == name or "/" not in requested:
        return ""
    return next((one for one, extended in extended_names.items() if extended == requested), "")
