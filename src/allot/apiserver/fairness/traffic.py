"""What all listeners of a server bound together: who may come in, how much each may send and leave unread."""

from allot.base import Metrics

from .shares import Shares
from .strangers import Strangers
from .unread import Unread


class Traffic:
    def __init__(self, metrics: Metrics | None = None) -> None:
        metrics = metrics or Metrics()
        self.shares = Shares(metrics)
        self.strangers = Strangers()
        self.unread = Unread()
        metrics.reading(
            "allot_connections_without_credentials",
            "Connections that have not shown credentials yet.",
            lambda: len(self.strangers),
        )
        metrics.reading(
            "allot_connections_turned_away_total",
            "Connections that were ended before they had shown credentials, since there were too many.",
            lambda: self.strangers.turned_away,
        )
        metrics.reading(
            "allot_unread_bytes",
            "Bytes of answers that wait for clients who do not read.",
            lambda: self.unread.waiting_bytes,
        )
        metrics.reading(
            "allot_unread_connections_cut_total",
            "Connections cut off since nobody read the answers.",
            lambda: self.unread.cut,
        )
