"""Acting as somebody else, for those who may.

    Impersonate-User     the name; the others count only beside it
    Impersonate-Group    any number
    Impersonate-Uid
    Impersonate-Extra-K  any number; K is percent-encoded and lower case

Every part is an action of its own on what is impersonated, and all of them must
be allowed to the real caller: being allowed to act as a user is not being allowed
to join a group.
"""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote

from allot.api import Action, User, errors

from .identities import AUTHENTICATED, UNAUTHENTICATED, service_account_groups, service_account_of

ANONYMOUS = "system:anonymous"
_PREFIX = "impersonate-"
_EXTRA = "impersonate-extra-"
_GROUP = "authentication.k8s.io"


class Impersonation(NamedTuple):
    user: User
    needs: tuple[Action, ...]  # all of them, of the real caller


def read_impersonation(headers: Mapping[str, str]) -> Impersonation | None:
    """What the headers ask for, or None. A repeated header comes as one value of several lines."""
    if _PREFIX not in "".join(headers):  # of nearly every request; quicker than asking each header
        return None
    asked = {header: value for header, value in headers.items() if header.startswith(_PREFIX)}
    name, uid = asked.get("impersonate-user", ""), asked.get("impersonate-uid", "")
    groups = asked["impersonate-group"].split("\n") if "impersonate-group" in asked else []
    extra = {
        unquote(header[len(_EXTRA) :]).lower(): value.split("\n")
        for header, value in asked.items()
        if header.startswith(_EXTRA)
    }
    if "\n" in name or "\n" in uid:
        raise errors.BadRequest("Impersonate-User and Impersonate-Uid may be given once")
    if not name:
        if groups or extra or uid:
            raise errors.BadRequest("impersonating a group, uid or extra needs Impersonate-User")
        return None
    needs = _needs(name, groups, uid, extra)
    values = {key: tuple(listed) for key, listed in extra.items()}
    return Impersonation(User(name, _implied(name, groups), uid, values), needs)


def _needs(name: str, groups: list[str], uid: str, extra: dict[str, list[str]]) -> tuple[Action, ...]:
    account = service_account_of(name)
    if account is not None:
        user = Action("impersonate", "", "serviceaccounts", "", account[0], account[1], "v1")
    else:
        user = Action("impersonate", "", "users", name=name, version="v1")
    return (
        user,
        *(Action("impersonate", "", "groups", name=group, version="v1") for group in groups),
        *([Action("impersonate", _GROUP, "uids", name=uid, version="v1")] if uid else []),
        *(
            Action("impersonate", _GROUP, "userextras", key, name=value, version="v1")
            for key, values in extra.items()
            for value in values
        ),
    )


def _implied(name: str, groups: list[str]) -> tuple[str, ...]:
    """A service account is in its groups; everybody is authenticated or not."""
    account = service_account_of(name)
    if account is not None and not groups:
        groups = [*service_account_groups(account[0])]
    known = UNAUTHENTICATED if name == ANONYMOUS else AUTHENTICATED
    marked = AUTHENTICATED in groups or UNAUTHENTICATED in groups
    return tuple(groups) if marked else (*groups, known)
