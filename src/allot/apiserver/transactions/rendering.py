"""The answers of a transaction's members.

A member runs before anything is stored, so the revision that its answer must show is not known yet. What it
answered with is kept, and rendered when the transaction has its revision.
"""

from collections.abc import Callable

from allot.api import Fields, Object, Request, Response
from allot.base import Clock

from ..reading.reader import renderer_of
from ..registry import Served
from ..requests.negotiate import wanted_form
from ..requests.render import Headers, Renderer


class Late(Renderer):
    """Keeps what it is to render."""

    answered: Object | None = None
    make: Callable[[Object], Fields] | None = None  # where the object itself is not the answer

    def answer(self, object: Object, status: int = 200, headers: Headers = ()) -> Response:
        self.answered = object
        return Response(status, headers=headers, object=object if self.is_plain else None)

    def answer_made(
        self, object: Object, make: Callable[[Object], Fields], headers: Headers = ()
    ) -> Response:
        self.answered, self.make = object, make
        return Response(200, headers=headers)

    def rendered(self, response: Response, shown: Callable[[Object], Object]) -> Response:
        """`response` with its object as it is `shown` now."""
        if self.answered is None:
            return response
        object = shown(self.answered)
        if self.make is not None:
            return Renderer.answer_made(self, object, self.make, response.headers)
        return Renderer.answer(self, object, response.status, response.headers)


class Lateness:
    """Makes the renderer of one member, and remembers it."""

    def __init__(self) -> None:
        self.renderer: Late | None = None

    def renderer_of(self, served: Served, request: Request, clock: Clock) -> Renderer:
        renderer_of(served, request, clock) if "includeObject" in request.query else None
        self.renderer = Late(served, wanted_form(request), clock)
        return self.renderer
