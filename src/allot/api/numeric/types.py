"""Capacity of nodes as typed views, and what a class says about parameters."""

from typing import Any

from ..meta import ObjectMeta, View


class NumericParameterType(View, frozen=True):
    """One kind of object that claims of a class may refer to, and how it becomes a model's parameters."""

    api_version: str = ""  # "" is v1 of the core group
    kind: str = ""
    cel_template: str = ""
    shareable: bool = False

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2] or "v1"


class NodeResourceInstance(View, frozen=True):
    id: str = ""
    api_version: str = ""  # of the type in `data`
    kind: str = ""
    data: Any = None  # a JSON object: the model of its type understands it, and nobody else


class NodeResourceCapacity(View, frozen=True):
    """What a driver has on a node, or a part of it. The name of the object means nothing."""

    metadata: ObjectMeta = ObjectMeta()
    node_name: str = ""
    driver_name: str = ""
    instances: tuple[NodeResourceInstance, ...] = ()
