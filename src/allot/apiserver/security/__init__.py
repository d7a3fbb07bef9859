"""Who is asking, and what they may do.

A request passes through here in this order; each step is a pure function or a
small index that the server tells of every stored object (`Authorizer.observe`).

    certificates, tokens   ->  authentication   who is it? revocations: does it still count?
    impersonation                               on whose behalf?
    rbac, node_authorizer  ->  authorizer       may they?
    node_restriction, escalation                may they write *this*?
    reviews, token_requests                     questions about all that

What these stand on:

    rules, aggregation, narrowing    one rule of a role; roles made of others; what a selector narrows
    node_graph, pod_references       which node needs which object
    jwt, openid                      tokens as such, and how others verify them
    authority, issuing, issued       the cluster's keys, and certificates made with them
    keyfiles, tls, kubeconfig        where keys lie, and how both ends use them
    identities, userinfo             the names of our components; a user as the API writes one
    bootstrap                        the roles that a cluster starts with
"""

from . import identities
from .authentication import Authenticator
from .authority import SERVING_NAMES, Authority, KeyPair
from .authorizer import Authorizer, refusal
from .bootstrap import objects as bootstrap_objects
from .bootstrap import reconciled
from .certificates import Certified, certified, user_of_der
from .certificates import user_of as user_of_certificate
from .escalation import refuse_escalation
from .impersonation import Impersonation, read_impersonation
from .issued import Issued, issued_from, record_issued
from .keyfiles import (
    BadKeyFiles,
    ServingFiles,
    keep_authority,
    open_authority,
    open_serving,
    private_directory,
    read_authority,
)
from .kubeconfig import Kubeconfig
from .node_restriction import owner_of_pool, refuse_node
from .openid import openid_document
from .reviews import (
    local_subject_access_review,
    self_subject_access_review,
    self_subject_review,
    self_subject_rules_review,
    subject_access_review,
    token_review,
)
from .revocations import Revocations
from .tls import server_context
from .token_requests import make_token
from .tokens import TokenRefused, Tokens

__all__ = [
    "SERVING_NAMES",
    "Authenticator",
    "Authority",
    "Authorizer",
    "BadKeyFiles",
    "Certified",
    "Impersonation",
    "Issued",
    "KeyPair",
    "Kubeconfig",
    "Revocations",
    "ServingFiles",
    "TokenRefused",
    "Tokens",
    "bootstrap_objects",
    "certified",
    "identities",
    "issued_from",
    "keep_authority",
    "local_subject_access_review",
    "make_token",
    "open_authority",
    "open_serving",
    "openid_document",
    "owner_of_pool",
    "private_directory",
    "read_authority",
    "read_impersonation",
    "reconciled",
    "record_issued",
    "refusal",
    "refuse_escalation",
    "refuse_node",
    "self_subject_access_review",
    "self_subject_review",
    "self_subject_rules_review",
    "server_context",
    "subject_access_review",
    "token_review",
    "user_of_certificate",
    "user_of_der",
]
