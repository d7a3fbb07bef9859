"""The core group: what clusters were made of first."""

from .config import CONFIG_MAP, SECRET
from .namespace import NAMESPACE
from .node import NODE
from .pod import POD
from .quota import LIMIT_RANGE, RESOURCE_QUOTA
from .replication import POD_TEMPLATE, REPLICATION_CONTROLLER
from .service import ENDPOINTS, SERVICE
from .serviceaccount import SERVICE_ACCOUNT
from .volume import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM

KINDS = (
    CONFIG_MAP, ENDPOINTS, LIMIT_RANGE, NAMESPACE, NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD,
    POD_TEMPLATE, REPLICATION_CONTROLLER, RESOURCE_QUOTA, SECRET, SERVICE, SERVICE_ACCOUNT,
)  # fmt: skip
