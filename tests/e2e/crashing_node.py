"""`allot node`, in which somebody is killed at a moment that the story names, once.

    python -m e2e.crashing_node WHEN WHAT VICTIM DONE node --name ...

WHEN is before or after. WHAT is a deed of the stage table, `keep` (the checkpoint is written) or `call`
(a driver is told). VICTIM is a file with a process id, or `self`. DONE is made when it has happened.
"""

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any

from allot.cli.main import main
from allot.node.pod_loop import PodLoop
from allot.nodeagent import preparing
from allot.nodeagent.keeping import Kept

Deed = Callable[..., Awaitable[Any]]


class Moment:
    def __init__(self, when: str, what: str, victim: str, done: str) -> None:
        self._when, self._what, self._victim, self._done = when, what, victim, Path(done)

    def strike(self, when: str, what: str) -> None:
        if (when, what) != (self._when, self._what):
            return
        try:
            self._done.touch(exist_ok=False)
        except FileExistsError:
            return
        pid = os.getpid() if self._victim == "self" else int(Path(self._victim).read_text())
        os.kill(pid, signal.SIGKILL)

    def around(self, deed: Deed, name: Callable[..., str]) -> Deed:
        @wraps(deed)
        async def struck(*given: Any, **more: Any) -> Any:
            what = name(*given)
            self.strike("before", what)
            answer = await deed(*given, **more)
            self.strike("after", what)
            return answer

        return struck


def arm(moment: Moment) -> None:
    PodLoop._do = moment.around(PodLoop._do, lambda loop, deed, life: type(deed).__name__)  # type: ignore[method-assign]
    Kept.keep = moment.around(Kept.keep, lambda kept: "keep")  # type: ignore[method-assign]
    preparing._told = moment.around(preparing._told, lambda *told: "call")  # type: ignore[assignment]


if __name__ == "__main__":
    arm(Moment(*sys.argv[1:5]))
    sys.exit(main(sys.argv[5:]))
