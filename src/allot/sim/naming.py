"""What the components of a machine are called."""

from .numeric_drivers import DRIVER as COUNTING
from .things import DRIVER, SHARING

DRIVERS = (DRIVER, SHARING)


def agent_of(node: str) -> str:
    return f"agent {node}"


def driver_of(driver: str, node: str) -> str:
    return f"driver {driver} {node}"


def components_of(*nodes: str) -> tuple[str, ...]:
    """An agent and its drivers on each of these."""
    drivers = (*DRIVERS, COUNTING)
    return tuple(
        name for node in nodes for name in (agent_of(node), *(driver_of(one, node) for one in drivers))
    )
