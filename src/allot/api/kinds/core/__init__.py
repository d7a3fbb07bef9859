"""The core group: what clusters were made of first."""

from .config import CONFIG_MAP, SECRET
from .namespace import NAMESPACE
from .node import NODE
from .pod import POD
from .serviceaccount import SERVICE_ACCOUNT

KINDS = (NAMESPACE, NODE, POD, CONFIG_MAP, SECRET, SERVICE_ACCOUNT)
