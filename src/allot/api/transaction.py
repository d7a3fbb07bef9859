"""transaction.allot.dev/v1alpha1 Transaction: several requests that are carried out together or not at all.

It is created and never stored; `apiserver.transactions` says what becomes of it.
"""

from typing import Any

import msgspec

from .kind import Kind, Version
from .schema import from_structural

GROUP = "transaction.allot.dev"
VERSION = "v1alpha1"
MEMBERS_MAX = 64
MEMBER = "TransactionMember"
"""The reason of the cause that names the member which was refused."""
DRY_RUN_OF_ONE = "dryRun: said for the whole transaction, not for one of its requests"
"""Why a request in it is refused that says so in its query or its options."""
ABSENT = "absent"
"""What `expect` says of an object that is not there."""

_ANY: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SHAPE = from_structural(
    {
        "type": "object",
        "description": "Several requests that are carried out together or not at all. It is created and "
        "never stored: the answer says in its status what each request was answered.",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "description": "What is to be done.",
                "required": ["requests"],
                "properties": {
                    "requests": {
                        "type": "array",
                        "description": "Requests that write or expect, in order. "
                        "Each sees what those before it did.",
                        "maxItems": MEMBERS_MAX,
                        "items": {
                            "type": "object",
                            "required": ["method", "path"],
                            "properties": {
                                "method": {
                                    "type": "string",
                                    "description": "POST, PUT, PATCH or DELETE; GET with expect.",
                                },
                                "path": {
                                    "type": "string",
                                    "description": "As of a request that comes alone, with its query.",
                                },
                                "contentType": {
                                    "type": "string",
                                    "description": "Of the body; application/json unless said otherwise.",
                                },
                                "body": {"description": "What the request sends, as JSON.", **_ANY},
                                "with": {
                                    "type": "string",
                                    "description": "status: the body is about the status as well.",
                                },
                                "expect": {
                                    "type": "string",
                                    "description": "With GET: the resourceVersion of the object, or absent. "
                                    "Nothing is carried out unless it is so.",
                                },
                            },
                        },
                    }
                },
            },
            "status": {
                "type": "object",
                "description": "What was done; only in answers.",
                "properties": {
                    "resourceVersion": {
                        "type": "string",
                        "description": "Of everything that was written.",
                    },
                    "results": {
                        "type": "array",
                        "description": "The answer to each request.",
                        "items": {
                            "type": "object",
                            "properties": {
                                "code": {"type": "integer", "description": "Of HTTP."},
                                "body": {"description": "What it would be answered alone.", **_ANY},
                                "warnings": {
                                    "type": "array",
                                    "description": "Of its answer.",
                                    "items": {"type": "string"},
                                },
                            },
                        },
                    },
                },
            },
        },
    }
)

TRANSACTION = Kind(
    group=GROUP,
    kind="Transaction",
    plural="transactions",
    versions=(Version(VERSION, "", custom=_SHAPE),),
    hub=VERSION,
    namespaced=False,
    verbs=("create",),
)
PATH = f"/apis/{GROUP}/{VERSION}/{TRANSACTION.plural}"


NO_BODY = msgspec.Raw()
"""Of a member that sends nothing: this very value is left out."""


# What clients send. A field that is misspelt would be a request that does something else: it is refused.


class Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    method: str
    path: str
    content_type: str = "application/json"
    body: msgspec.Raw = NO_BODY
    # The subresource that is written with the object.
    beside: str | None = msgspec.field(name="with", default=None)
    expect: str | None = None  # of an object that is only looked at: its resourceVersion, or ABSENT


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    requests: list[Member]


class Sent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    spec: Spec
    api_version: str = f"{GROUP}/{VERSION}"
    kind: str = TRANSACTION.kind
    metadata: dict[str, Any] | None = None


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    code: int
    body: msgspec.Raw = msgspec.Raw()
    warnings: list[str] = []


class Status(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str
    results: list[Result]


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """What the server answers with."""

    status: Status
    api_version: str = f"{GROUP}/{VERSION}"
    kind: str = TRANSACTION.kind
    metadata: dict[str, Any] = {}
