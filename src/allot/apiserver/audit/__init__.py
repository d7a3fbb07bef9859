"""Who did what, and what the server said to it: one JSON line a request.

    settings  where the log lies, and how large it grows
    policy    which requests are recorded
    event     what a line says, within bounds
    flood     how many refusals of one caller are recorded, and what is said of the rest
    logfile   the file: owner only, whole lines, rotated here or from outside
    writer    the thread between the server and the disk: a slow or full disk holds nobody
    auditor   the one place that is told of every answer

Lines have the form of upstream's `audit.k8s.io/v1` Event at the level Metadata, so tools that
read those read these. No line has a body, a query, a header besides the user agent, or a token.
"""

from .auditor import Answered, Auditor, open_audit
from .policy import Level
from .settings import AuditSettings

__all__ = ["Answered", "AuditSettings", "Auditor", "Level", "open_audit"]
