"""Jobs: pods that run until enough of them have succeeded.

    counting   every finished pod is counted exactly once, across crashes (JOB1)
    plan       pods to make and delete, and how a job ends
    loop       does it

What it promises
    * JOB1  The numbers in the status are exact, whenever a copy of this controller dies.
    * JOB2  A job ends once: Complete or Failed, never both, and it makes no pods afterwards. The status is
            written first, by version: who knows an older job is refused before it makes a pod.
    * JOB3  A job that somebody else manages (`managedBy`) is left to them.

Indexed jobs are known; pod failure policies, success policies and limits by index are not.
"""

from ..controller import Controller
from ..workloads import PODS
from .loop import JOBS, make

CONTROLLER = Controller("job-controller", "job-controller", (JOBS, PODS), make)

__all__ = ["CONTROLLER"]
