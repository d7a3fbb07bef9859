"""What an autoscaler asks of whoever has nodes to give."""

from typing import Protocol

from ..groups import GroupEntry


class ProviderFailed(Exception):
    """It could not be done now. The message says what is known."""


class Provider(Protocol):
    """Nodes register with the label of their group (`groups.LABEL`). Every call may be repeated."""

    async def resize(self, group: GroupEntry, nodes: int) -> None:
        """So many nodes are wanted of a group, those that there are included. Raises ProviderFailed."""

    async def remove(self, group: GroupEntry, node: str) -> None:
        """This node is not wanted any more, and its group is smaller by one. Raises ProviderFailed."""
