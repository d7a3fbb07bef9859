"""Who takes several writes in one transaction. In a world of old and new parts, not everybody does."""

from enum import Enum


class Together(Enum):
    ALL = "all"
    SOME = "some"  # the first server, and no scheduler that stands alone
    NONE = "none"

    @classmethod
    def drawn(cls, lot: float) -> "Together":
        return cls.ALL if lot < 0.5 else cls.SOME if lot < 0.75 else cls.NONE

    def of_server(self, number: int) -> bool:
        return self is Together.ALL or (self is Together.SOME and number == 0)
