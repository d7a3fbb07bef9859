"""Whether somebody may still do what was allowed when it began.

A watch lives for an hour, and the rights of whoever watches may not. They are asked about again as soon
as a role or a binding has changed; those of nodes also every now and then, since what runs on a node gives
it rights too.
"""

from collections.abc import Sequence

from allot.api import Action, User

from ..security.authorizer import Authorizer
from ..security.identities import node_of


class WatchRights:
    __slots__ = ("_authorizer", "_is_of_a_node", "_needs", "_revision", "_was_lost")

    def __init__(self, authorizer: Authorizer, needs: Sequence[tuple[User, Action]]) -> None:
        """`needs` are all that was asked for, and of whom: also to act as somebody else."""
        self._authorizer = authorizer
        self._needs = needs
        self._is_of_a_node = any(node_of(user) is not None for user, _ in needs)
        self._revision = authorizer.policy.revision
        self._was_lost = False

    def holds(self) -> bool:
        """As far as roles and bindings go. Costs nothing while they stay as they are."""
        if self._revision != self._authorizer.policy.revision:
            self._ask()
        return not self._was_lost

    def look_again(self) -> bool:
        """Whatever it is that gives the right."""
        if self._is_of_a_node:
            self._ask()
        return self.holds()

    def _ask(self) -> None:
        """Who has lost it does not get it back: there is a new request for that."""
        self._revision = self._authorizer.policy.revision
        allowed = all(self._authorizer.authorize(user, need).allowed for user, need in self._needs)
        self._was_lost = self._was_lost or not allowed
