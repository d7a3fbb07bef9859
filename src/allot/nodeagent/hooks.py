"""Runs the hooks of containers, and knows how each went.

postStart begins with the container, which has not started before it is done. preStop comes before the signal
that ends a container, and has the container's grace. Each runs once for an attempt.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from .checks import Looked, Reaching, look
from .dialing import Network
from .errands import Errands
from .probes import Outcome
from .probing import Which, which_of
from .runtimes import Attempt
from .views import Container, Handler

LONG_S = 24 * 3600.0
"""How long a postStart hook may take: nothing bounds it but the life of the pod."""


class Moment(Enum):
    POST_START = "PostStart"
    PRE_STOP = "PreStop"


class _Hook(NamedTuple):
    which: Which
    moment: Moment


class Hooks:
    def __init__(self, errands: Errands, reaching: Reaching, network: Network) -> None:
        self._errands, self._reaching, self._network = errands, reaching, network
        self._outcomes: dict[_Hook, Outcome | None] = {}  # None: it goes on
        self.address_of: Callable[[str], str] = lambda uid: ""
        self.done: Callable[[Attempt, Moment, Outcome], None] = lambda attempt, moment, outcome: None

    def begin(self, attempt: Attempt, container: Container, moment: Moment, within_s: float = LONG_S) -> None:
        """Nothing happens where the container has no such hook, or that has begun already."""
        handler, hook = handler_of(container, moment), _Hook(which_of(attempt), moment)
        if handler is None or hook in self._outcomes:
            return
        self._outcomes[hook] = None
        looked = Looked(attempt, container, handler, within_s, self.address_of(attempt.pod_uid))
        self._errands.begin(hook, lambda: self._run(hook, looked))

    def goes_on(self, attempt: Attempt, moment: Moment) -> bool:
        hook = _Hook(which_of(attempt), moment)
        return hook in self._outcomes and self._outcomes[hook] is None

    def outcome(self, attempt: Attempt, moment: Moment) -> Outcome | None:
        """None: it goes on, or there was none."""
        return self._outcomes.get(_Hook(which_of(attempt), moment))

    def forget_pod(self, uid: str) -> None:
        for hook in [one for one in self._outcomes if one.which[0] == uid]:
            del self._outcomes[hook]
            self._errands.end(hook)

    async def _run(self, hook: _Hook, looked: Looked) -> None:
        outcome = await look(looked, self._reaching, self._network)
        if hook in self._outcomes:
            self._outcomes[hook] = outcome
            self.done(looked.attempt, hook.moment, outcome)


def handler_of(container: Container, moment: Moment) -> Handler | None:
    lifecycle = container.lifecycle
    return lifecycle.post_start if moment is Moment.POST_START else lifecycle.pre_stop
