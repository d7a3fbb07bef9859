"""Jobs that have ended are kept to be read, for as long as they say (`ttlSecondsAfterFinished`).

    plan   how long a job may still stay
    loop   waits for it, and deletes the job with its pods

What it promises
    * A job goes at its time or later, never earlier, and only as it was when that was decided:
      somebody who asks for more time a moment before gets it.
    * A job that names no time stays.
"""

from ..controller import Controller
from .loop import JOBS, make

CONTROLLER = Controller("ttl-after-finished-controller", "ttl-after-finished-controller", (JOBS,), make)

__all__ = ["CONTROLLER"]
