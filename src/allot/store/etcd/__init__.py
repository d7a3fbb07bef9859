"""A store that an etcd cluster keeps, for one API server or many.

    address      what `--store etcd://…` says
    connection   channels, credentials, and which failures leave a write undone
    engine       reads and transactions
    watch        one stream per watch, taken up again where it broke off

`allot_etcd_pb2` is generated from proto/etcd.
"""

from .address import Address
from .engine import EtcdStore

__all__ = ["Address", "EtcdStore"]
