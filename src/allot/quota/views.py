"""The names that devices of one class are counted under (Q3).

    <class>.deviceclass.resource.k8s.io/devices             what claims ask for
    requests.deviceclass.resource.kubernetes.io/<class>     as an extended resource without a name
    requests.<extended resource>                            under the name that the class has

Whoever asks for a device under one of them takes it from all: a claim, and a pod that asks for
the extended resource, whether a driver or a device plugin will serve it. KEP-5004, "Resource Quota".
"""

from collections.abc import Mapping

from .amounts import ZERO, Usage
from .names import DEVICES_SUFFIX, IMPLICIT, REQUESTS

ExtendedNames = Mapping[str, str] | None
"""Device class -> extended resource. None where pods cannot ask for devices in this way."""


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
    """The class that a requested resource stands for; "" where there is none, or no single one."""
    if extended_names is None:
        return ""
    if name.startswith(IMPLICIT):
        return name.removeprefix(IMPLICIT)
    resource = name.removeprefix(REQUESTS)
    if resource == name or "/" not in resource:
        return ""
    classes = [one for one, extended in extended_names.items() if extended == resource]
    return classes[0] if len(classes) == 1 else ""
