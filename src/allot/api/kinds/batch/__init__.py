"""batch/v1: pods that are to end."""

from .cronjob import CRON_JOB
from .job import JOB

KINDS = (CRON_JOB, JOB)
