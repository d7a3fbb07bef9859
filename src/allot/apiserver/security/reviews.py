"""Questions to the server about users and rights. Nothing is stored: body in, body out.

    TokenReview               whose token is this?
    SelfSubjectReview         who am I?
    SubjectAccessReview       may somebody do this?
    SelfSubjectAccessReview   may I?
    LocalSubjectAccessReview  may somebody, in this namespace? (its admin may ask)
    SelfSubjectRulesReview    what may I do in a namespace?

Asking is an action like any other and has been authorized before it gets here.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from allot.api import Action, User, errors, field

from .authorizer import Authorizer
from .tokens import TokenRefused, Tokens
from .userinfo import read_user, user_info

Body = Mapping[str, Any]
Answer = dict[str, Any]

_AUTHORIZATION = "authorization.k8s.io"
_SPEC = field.Path("spec")


def token_review(tokens: Tokens, now: datetime, body: Body) -> Answer:
    spec = body.get("spec") or {}
    if not spec.get("token"):
        raise errors.BadRequest("token is required for TokenReview in authentication")
    wanted = tuple(spec.get("audiences") or (tokens.issuer,))
    try:
        verified = tokens.verify(spec["token"], now, wanted)
    except TokenRefused as refused:
        return _answered(body, {"authenticated": False, "error": str(refused)})
    shared = [audience for audience in wanted if audience in verified.claims.aud]
    status = {"authenticated": True, "user": user_info(verified.user), "audiences": shared}
    return _answered(body, status)


def self_subject_review(user: User, body: Body) -> Answer:
    return _answered(body, {"userInfo": user_info(user)})


def subject_access_review(authorizer: Authorizer, body: Body) -> Answer:
    spec = body.get("spec") or {}
    _refuse("SubjectAccessReview", [*_subject_errors(spec), *_attribute_errors(spec)])
    return _access(authorizer, read_user(spec), spec, body)


def self_subject_access_review(authorizer: Authorizer, user: User, body: Body) -> Answer:
    spec = body.get("spec") or {}
    _refuse("SelfSubjectAccessReview", _attribute_errors(spec))
    return _access(authorizer, user, spec, body)


def local_subject_access_review(authorizer: Authorizer, namespace: str, body: Body) -> Answer:
    spec = body.get("spec") or {}
    wrong = [*_subject_errors(spec), *_attribute_errors(spec)]
    if spec.get("nonResourceAttributes") is not None:
        text = "disallowed on this kind of request"
        wrong.append(field.invalid(_SPEC / "nonResourceAttributes", spec["nonResourceAttributes"], text))
    _refuse("LocalSubjectAccessReview", wrong)
    asked = (spec["resourceAttributes"]).get("namespace") or ""
    if asked != namespace:
        raise errors.BadRequest(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
    return _access(authorizer, read_user(spec), spec, body)


def self_subject_rules_review(authorizer: Authorizer, user: User, body: Body) -> Answer:
    namespace = (body.get("spec") or {}).get("namespace") or ""
    if not namespace:
        raise errors.BadRequest("no namespace on request")
    rules, problems = authorizer.rules_for(user, namespace)
    status: Answer = {
        "resourceRules": [rule.fields() for rule in rules if rule.resources],
        "nonResourceRules": [rule.fields() for rule in rules if rule.urls],
        "incomplete": bool(problems),
    }
    if problems:
        status["evaluationError"] = "; ".join(problems)
    return _answered(body, status)


def _access(authorizer: Authorizer, user: User, spec: Body, body: Body) -> Answer:
    decision = authorizer.authorize(user, _action(spec))
    status: Answer = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return _answered(body, status)


def _action(spec: Body) -> Action:
    path = spec.get("nonResourceAttributes")
    if path is not None:
        return Action(path.get("verb") or "", path=path.get("path") or "")
    asked = spec["resourceAttributes"]
    return Action(
        verb=asked.get("verb") or "",
        group=asked.get("group") or "",
        resource=asked.get("resource") or "",
        subresource=asked.get("subresource") or "",
        namespace=asked.get("namespace") or "",
        name=asked.get("name") or "",
        version=asked.get("version") or "",
        field_selector=_field_selector(asked.get("fieldSelector") or {}),
    )


def _field_selector(asked: Body) -> str:
    """Requirements beyond equality cannot narrow anything we know of, and are left out."""
    if asked.get("rawSelector"):
        return str(asked["rawSelector"])
    return ",".join(
        f"{need.get('key', '')}={need['values'][0]}"
        for need in asked.get("requirements") or ()
        if need.get("operator") == "In" and len(need.get("values") or ()) == 1
    )


def _attribute_errors(spec: Body) -> list[field.FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        text = "cannot be specified in combination with resourceAttributes"
        return [field.invalid(_SPEC / "nonResourceAttributes", path, text)]
    if resource is None and path is None:
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [field.invalid(_SPEC / "resourceAttributes", resource, text)]
    return []


def _subject_errors(spec: Body) -> list[field.FieldError]:
    if spec.get("user") or spec.get("groups"):
        return []
    text = "at least one of user or group must be specified"
    return [field.invalid(_SPEC / "user", spec.get("user") or "", text)]


def _refuse(kind: str, wrong: list[field.FieldError]) -> None:
    if wrong:
        raise field.refusal(_AUTHORIZATION, kind, "", wrong)


def _answered(body: Body, status: Answer) -> Answer:
    metadata = {"creationTimestamp": None, **(body.get("metadata") or {})}
    return {**body, "metadata": metadata, "status": status}
