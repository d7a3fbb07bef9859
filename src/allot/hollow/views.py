"""What a hollow machine reads in the status of a pod that ran before its process began."""

from allot.api import meta


class TerminatedState(meta.View, frozen=True):
    exit_code: int = 0
    started_at: str = ""
    finished_at: str = ""


class WaitingState(meta.View, frozen=True):
    reason: str = ""
    message: str = ""


class RunningState(meta.View, frozen=True):
    started_at: str = ""


class ContainerState(meta.View, frozen=True):
    """At most one of these is set."""

    waiting: WaitingState | None = None
    running: RunningState | None = None
    terminated: TerminatedState | None = None


class ContainerStatus(meta.View, frozen=True):
    name: str = ""
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(meta.View, frozen=True):
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(meta.View, frozen=True):
    status: PodStatus = PodStatus()
