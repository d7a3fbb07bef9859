"""One request on one resource, with everything about it that is settled before it is carried out."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from allot.api import Kind, Request, User, errors

from ..registry import Served
from .aside import HERE, SMALL_BYTES, Seat, weight_of
from .render import Renderer
from .target import Target

T = TypeVar("T")

MANAGER_LENGTH_MAX = 128


class Call(msgspec.Struct, frozen=True):
    target: Target
    served: Served
    request: Request
    user: User
    renderer: Renderer
    kind: Kind  # of what is served
    caller: User  # who sent it, perhaps as `user`
    seat: Seat = msgspec.field(default_factory=lambda: HERE)  # where it is worked on

    @property
    def acting_as(self) -> User | None:
        """For whom it was sent, if not for its caller."""
        return self.user if self.user is not self.caller else None

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be written. Raises BadRequest."""
        said = self.request.query.get("dryRun", "")
        if said not in ("", "All"):
            raise errors.BadRequest(f'dryRun: Unsupported value: "{said[:64]}": supported values: "All"')
        return said == "All"

    @property
    def field_validation(self) -> str:
        return field_validation(self.request)

    def is_light(self, size: int = 0) -> bool:
        """Whether the body, and something else of that size, are worked on where they are (ASIDE1)."""
        return size <= SMALL_BYTES and weight_of(self.request) <= SMALL_BYTES

    async def settle(self, size: int = 0) -> bool:
        """Before the body is worked on, with something else of that size. See `Seat.settle`."""
        return await self.seat.settle(max(size, weight_of(self.request)))

    async def read(self, work: Callable[[], T]) -> T:
        """What `work`, which is pure, makes of the body."""
        if self.is_light():
            return work()
        await self.settle()
        return await self.seat.do(work)

    @property
    def manager(self) -> str:
        """Who owns the fields that this write sets."""
        said = self.request.query.get("fieldManager", "")
        if said:
            if len(said) > MANAGER_LENGTH_MAX or not said.isprintable():
                raise errors.BadRequest(
                    f"fieldManager: Invalid value: at most {MANAGER_LENGTH_MAX} printable characters"
                )
            return said
        agent = self.request.headers.get("user-agent", "")
        return agent.partition("/")[0][:MANAGER_LENGTH_MAX] or "unknown"


def field_validation(request: Request) -> str:
    """What becomes of fields that a kind does not have, and of keys given twice: Ignore, Warn or Strict."""
    said = request.query.get("fieldValidation", "") or "Warn"
    if said not in ("Ignore", "Warn", "Strict"):
        raise errors.BadRequest(
            f'fieldValidation: Unsupported value: "{said[:64]}": supported values: "Ignore", "Strict", "Warn"'
        )
    return said
