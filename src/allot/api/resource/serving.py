"""Which device class serves the name of an extended resource. KEP-5004.

Administrators should give a name to one class only. Where several have it, the one created last
serves it; of those created in the same second, the first by name. The scheduler claims devices
of that class, and quota counts under its names.
"""

from collections.abc import Iterable

from .types import DeviceClass


def serving(contenders: Iterable[DeviceClass]) -> DeviceClass | None:
    """Of the classes that have one name, the one that serves it."""
    by_name = sorted(contenders, key=lambda one: one.metadata.name)
    return max(by_name, key=_created, default=None)  # of equals the first


def _created(device_class: DeviceClass) -> str:
    """Times are written alike, to the second and in UTC, so letters compare as times do."""
    return device_class.metadata.creation_timestamp
