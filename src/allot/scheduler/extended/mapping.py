"""Which device class stands behind the name of an extended resource.

Every class is reachable under its implicit name, `deviceclass.resource.kubernetes.io/<class>`,
and under `spec.extendedResourceName` if it has one. Administrators should give a name to one
class only. Where several have it, the one created last serves it; of those created in the same
second, the first by name.

A class of compute resources may also name a device class (KEP-14): its own name is then one more under which
that class is reachable.

What it promises
    EXTMAP1  The answer is what a computation from nothing over the present classes gives. It
             depends neither on the order in which classes came nor on what they were before.
    EXTMAP2  A change costs what it touches, not the number of classes.
    EXTMAP3  `put` and `remove` name every resource of which the answer changed, and no other.
    EXTMAP4  A fork costs what is changed on it, and its parent never notices.

Why every contender is kept
    Upstream's cache keeps the winner alone. It then drops a name when a loser goes, does not
    promote the next one when the winner goes, forgets the implicit name of a class that came
    second, and overlooks a class that changed without changing its name. With all contenders
    at hand there is nothing to keep in step: whoever asks compares those that are there.
"""

from allot.api import resource
from allot.base import InvariantBroken, Overlay

IMPLICIT_PREFIX = resource.limits.IMPLICIT_EXTENDED_RESOURCE_PREFIX

Contenders = frozenset[str]
"""Names of the classes that claim one resource."""


def implicit_name(class_name: str) -> str:
    return IMPLICIT_PREFIX + class_name


class ExtendedResources:
    """The present device classes, by the resources that they serve."""

    def __init__(self) -> None:
        self._classes: Overlay[str, resource.DeviceClass] = Overlay()
        self._contenders: Overlay[str, Contenders] = Overlay()  # by explicit resource name
        self._bridges: Overlay[str, str] = Overlay()  # names of compute classes -> device class

    def fork(self) -> "ExtendedResources":
        forked = ExtendedResources()
        forked._classes = self._classes.fork()
        forked._contenders = self._contenders.fork()
        forked._bridges = self._bridges.fork()
        return forked

    # -- asking ---------------------------------------------------------------------------------

    def class_for(self, name: str) -> resource.DeviceClass | None:
        """The class that serves a resource. An implicit name is never anything but its own class."""
        if name.startswith(IMPLICIT_PREFIX):
            return self._classes.get(name.removeprefix(IMPLICIT_PREFIX))
        bridged = self._bridges.get(name)
        if bridged is not None:
            return self._classes.get(bridged)
        return resource.serving(self._known(one) for one in self._contenders.get(name) or ())

    # -- hearing --------------------------------------------------------------------------------

    def put(self, device_class: resource.DeviceClass) -> frozenset[str]:
        """A class is there, or is different. Returns the resources that are served otherwise now."""
        return self._replace(device_class.metadata.name, device_class)

    def remove(self, class_name: str) -> frozenset[str]:
        """A class is gone. Returns the resources that are served otherwise now."""
        return self._replace(class_name, None)

    def bridge(self, name: str, class_name: str) -> frozenset[str]:
        """A name stands for the devices of a class, too; "" for none. Returns it if it is served otherwise
        now."""
        before = _service(self.class_for(name))
        if class_name:
            self._bridges.set(name, class_name)
        else:
            self._bridges.drop(name)
        return frozenset() if _service(self.class_for(name)) == before else frozenset({name})

    def _replace(self, class_name: str, new: resource.DeviceClass | None) -> frozenset[str]:
        old = self._classes.get(class_name)
        touched = {implicit_name(class_name)}
        touched.update(filter(None, map(explicit_name, (old, new))))
        touched.update(name for name, to in self._bridges.items() if to == class_name)
        before = {name: _service(self.class_for(name)) for name in touched}
        self._leave(old)
        if new is None:
            self._classes.drop(class_name)
        else:
            self._classes.set(class_name, new)
            self._join(new)
        return frozenset(name for name in touched if _service(self.class_for(name)) != before[name])

    def _join(self, device_class: resource.DeviceClass) -> None:
        name = explicit_name(device_class)
        if name:
            others = self._contenders.get(name) or frozenset()
            self._contenders.set(name, others | {device_class.metadata.name})

    def _leave(self, device_class: resource.DeviceClass | None) -> None:
        name = explicit_name(device_class)
        if device_class is None or not name:
            return
        others = (self._contenders.get(name) or frozenset()) - {device_class.metadata.name}
        if others:
            self._contenders.set(name, others)
        else:
            self._contenders.drop(name)

    def _known(self, class_name: str) -> resource.DeviceClass:
        device_class = self._classes.get(class_name)
        if device_class is None:
            raise InvariantBroken(f"EXTMAP1: class {class_name} contends for a resource and is not there")
        return device_class


def explicit_name(device_class: resource.DeviceClass | None) -> str:
    return (device_class.spec.extended_resource_name or "") if device_class is not None else ""


def _service(device_class: resource.DeviceClass | None) -> object:
    """What whoever asks for devices of a class depends on."""
    if device_class is None:
        return None
    return device_class.metadata.name, device_class.metadata.uid, device_class.spec
