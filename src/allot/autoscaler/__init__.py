"""What an autoscaler asks others.

extenders    drivers of classic claims, about nodes that exist and nodes that might: KEP-3063's extender
"""

from .extenders import (
    BadConfiguration,
    CannotPlace,
    Cycle,
    Extender,
    ExtenderFailed,
    Filtered,
    SessionLost,
    configured,
)

__all__ = [
    "BadConfiguration",
    "CannotPlace",
    "Cycle",
    "Extender",
    "ExtenderFailed",
    "Filtered",
    "SessionLost",
    "configured",
]
