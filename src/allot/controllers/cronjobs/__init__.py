"""Cron jobs: a job whenever it is time.

    views   the few fields that decide
    plan    whether a job is due, which jobs go, and how the cron job stands
    loop    waits, makes and deletes

What it promises
    * CRON1  A time that is due gets one job at most: its name follows from the time, so that a second leader,
             or this one after a crash, finds the first. The time goes into the status before that job is
             replaced or forgotten, and a time before it is not due any more, whatever a clock says.
    * CRON2  No job begins for a cron job that was suspended, changed or deleted before: the server is asked
             first.
    * Of times that were missed only the last is made good, and none after `startingDeadlineSeconds`.
    * Forbid: no job begins beside another. Replace: the jobs that run are deleted first.
"""

from ..controller import Controller
from .loop import CRON_JOBS, JOBS, make

CONTROLLER = Controller("cronjob-controller", "cronjob-controller", (CRON_JOBS, JOBS), make)

__all__ = ["CONTROLLER"]
