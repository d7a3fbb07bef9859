"""The kinds that are asked and never stored: access and token reviews."""

from collections.abc import Awaitable, Callable, Mapping

from allot.api import Fields, Request, Response, User, encode, schema
from allot.base import Clock

from .requests.aside import Seat, weight_of
from .requests.target import Target
from .requests.warnings import warning_headers
from .security import (
    Authorizer,
    Tokens,
    local_subject_access_review,
    self_subject_access_review,
    self_subject_review,
    self_subject_rules_review,
    subject_access_review,
    token_review,
)
from .writing.body import read_other

AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"

REVIEWS = (
    (AUTHENTICATION, "v1", "selfsubjectreviews", "SelfSubjectReview", False),
    (AUTHENTICATION, "v1", "tokenreviews", "TokenReview", False),
    (AUTHORIZATION, "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", True),
    (AUTHORIZATION, "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False),
    (AUTHORIZATION, "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", False),
    (AUTHORIZATION, "v1", "subjectaccessreviews", "SubjectAccessReview", False),
)
"""(group, version, plural, kind, namespaced)"""

Ask = Callable[[Fields, User, str], Fields]
Review = Callable[[Target, Request, User, Seat], Awaitable[Response]]


def reviews(
    authorizer: Authorizer, tokens: Callable[[], Tokens], clock: Clock
) -> Mapping[tuple[str, str, str], Review]:
    def review_token(body: Fields, user: User, namespace: str) -> Fields:
        return token_review(tokens(), clock.now(), body)

    asks: Mapping[str, Ask] = {
        "selfsubjectreviews": lambda body, user, namespace: self_subject_review(user, body),
        "tokenreviews": review_token,
        "localsubjectaccessreviews": lambda body, user, namespace: local_subject_access_review(
            authorizer, namespace, body
        ),
        "selfsubjectaccessreviews": lambda body, user, namespace: self_subject_access_review(
            authorizer, user, body
        ),
        "selfsubjectrulesreviews": lambda body, user, namespace: self_subject_rules_review(
            authorizer, user, body
        ),
        "subjectaccessreviews": lambda body, user, namespace: subject_access_review(authorizer, body),
    }
    return {
        (group, version, plural): _review(asks[plural], f"{group}/{version}", kind)
        for group, version, plural, kind, _ in REVIEWS
    }


def _review(ask: Ask, api_version: str, kind: str) -> Review:
    shape = f"io.k8s.api.{api_version.partition('.')[0]}.v1.{kind}"

    async def answer(target: Target, request: Request, user: User, seat: Seat) -> Response:
        await seat.settle(weight_of(request))
        body, warnings = await seat.do(lambda: read_other(request, schema.get(shape), kind, (api_version,)))
        said = ask(body, user, target.namespace)
        return Response(201, await seat.do(lambda: encode(said)), headers=warning_headers(warnings))

    return answer
