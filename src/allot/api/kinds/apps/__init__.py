"""apps/v1: what keeps pods running."""

from .daemonset import DAEMON_SET
from .deployment import DEPLOYMENT
from .replicaset import REPLICA_SET
from .revision import CONTROLLER_REVISION
from .statefulset import STATEFUL_SET

KINDS = (CONTROLLER_REVISION, DAEMON_SET, DEPLOYMENT, REPLICA_SET, STATEFUL_SET)
