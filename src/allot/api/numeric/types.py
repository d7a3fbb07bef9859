"""Capacity of nodes as typed views."""

from typing import Any

from ..meta import ObjectMeta, View


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
