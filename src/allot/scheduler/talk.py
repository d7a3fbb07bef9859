"""A PodScheduling as the scheduler reads it: the talk of one pod with the drivers of its classic claims.

It carries the name of its pod, and so outlives a pod of that name: whose it is, the owner's uid says (P5).
"""

from collections.abc import Mapping

import msgspec

from allot.api import Object, classic
from allot.informers import Key


class Talk(msgspec.Struct, frozen=True, eq=False, gc=False):
    object: Object
    uid: str
    key: Key  # its own, and that of its pod
    pod: str  # the uid of the pod that it is about
    selected: str  # the node on which drivers are to allocate, "" for none
    nodes: tuple[str, ...]  # the potential nodes: drivers are asked which of them will not do
    answers: Mapping[str, frozenset[str]]  # by entry of the pod's spec: the nodes that will not do

    @classmethod
    def of(cls, object: Object) -> "Talk":
        view = object.view(classic.PodScheduling)
        answers = {one.name: frozenset(one.unsuitable_nodes) for one in view.status.resource_claims}
        spec, key = view.spec, Key.of(object)
        return cls(
            object, object.uid, key, _owner(view, key.name), spec.selected_node, spec.potential_nodes, answers
        )

    def __repr__(self) -> str:
        return f"Talk({self.key} {self.uid} of {self.pod})"


def _owner(view: classic.PodScheduling, name: str) -> str:
    """ "" where nobody owns it who could be its pod: then it is nobody's."""
    owners = (one for one in view.metadata.owner_references if one.kind == "Pod" and one.name == name)
    return next((one.uid for one in owners), "")
