"""What an autoscaler asks of whoever has nodes to give."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from allot.api import Object

from ..groups import GroupEntry, Offer


class ProviderFailed(Exception):
    """It could not be done now. The message says what is known."""


class Provider(Protocol):
    """Nodes register with the label of their group (`groups.LABEL`). Every call may be repeated."""

    async def resize(self, group: GroupEntry, nodes: int) -> None:
        """So many nodes are wanted of a group, those that there are included. Raises ProviderFailed."""

    async def remove(self, group: GroupEntry, node: str) -> None:
        """This node is not wanted any more, and its group is smaller by one. Raises ProviderFailed."""


@dataclass(frozen=True, slots=True)
class Survey:
    offers: tuple[Offer, ...] = ()
    members: Mapping[str, str] = field(default_factory=dict)  # the group of a node, by the node's name


class Cloud(Provider, Protocol):
    """A provider that knows more than what it is told: which groups there are, and whose a node is."""

    async def survey(self, nodes: Mapping[str, Object]) -> Survey:
        """How it stands, for these nodes of the cluster. Raises ProviderFailed."""

    async def forgo(self, group: GroupEntry, nodes: int) -> None:
        """So many that were asked for and have not come are not waited for. Raises ProviderFailed."""

    async def discard(self, group: GroupEntry, instance: str) -> None:
        """A machine that will be no node is not wanted any more. Raises ProviderFailed."""
