"""allot credentials: a kubeconfig for a user or a component; which there are; taking them back.

    allot credentials [issue] USER     make one
    allot credentials list             which were made here, and which are revoked
    allot credentials revoke USER      or --serial S: certificates that count no more, at once
    allot credentials restore USER     or --serial S: they count again

Whoever can read the data directory holds the keys of the cluster and may name
anybody; what that user may then do is up to roles and bindings. Well-known names
bring their groups along:

    allot-admin                              cluster-admin, through a binding
    system:kube-scheduler                    the scheduler
    system:kube-controller-manager           the controllers' process
    system:serviceaccount:kube-system:NAME   one controller
    system:node:NAME                         the agent of a node

Break-glass: when the roles themselves are broken, `--group system:masters` makes
a credential that is above all roles. It lives for an hour unless told otherwise, and
never longer than a day.
"""

import argparse
import re
import sys
from datetime import timedelta
from pathlib import Path

from allot.apiserver import security
from allot.base import SystemClock, write_file

from . import flags, revoking
from .revoking import Unusable
from .wording import plain

_VERBS = ("issue", "list", "revoke", "restore")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "": "seconds"}
_LIFETIME = timedelta(days=365)
_LIFETIME_MAX = timedelta(days=3650)
_MASTERS_LIFETIME = timedelta(hours=1)
_MASTERS_LIFETIME_MAX = timedelta(days=1)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "allot credentials [options] [issue] USER\n"
        "       allot credentials [options] list\n"
        "       allot credentials [options] {revoke,restore} (USER | --serial S)"
    )
    parser.add_argument(
        "words",
        nargs="+",
        metavar="WORD",
        help="a user (ann, say, or system:node:NAME) to make a credential for; "
        "list; revoke USER; restore USER",
    )
    parser.add_argument(
        "--serial", type=revoking.serial, metavar="S", help="revoke, restore: one certificate"
    )
    parser.add_argument(
        "--reason", default="", metavar="TEXT", help="revoke: why, for those who see the list"
    )
    parser.add_argument("--group", action="append", default=[], metavar="G", help="a group; may be repeated")
    parser.add_argument(
        "--data-dir", type=flags.path, default=Path("allot-data"), help="default: ./allot-data"
    )
    parser.add_argument(
        "--out",
        type=flags.something,
        metavar="FILE",
        help="default: DATA-DIR/credentials/USER.kubeconfig; - is stdout",
    )
    parser.add_argument("--duration", type=_duration, metavar="D", help="e.g. 90d, 12h, 30m; default: 365d")
    parser.add_argument("--server", metavar="URL", help="default: the one in DATA-DIR/kubeconfig")
    parser.add_argument("--namespace", default="", help="the namespace of the kubeconfig's context")


def run(options: argparse.Namespace) -> int:
    try:
        return _run(options)
    except (Unusable, security.BadKeyFiles, OSError) as error:
        print(f"allot credentials: {plain(error)}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    verb, users = options.words[0], options.words[1:]
    if verb not in _VERBS:
        verb, users = "issue", options.words
    if len(users) > 1 or not all(user.strip() for user in users):
        raise Unusable(f"one USER is wanted, not {' '.join(map(repr, users))}")
    user = users[0] if users else ""
    if verb in ("revoke", "restore") and bool(user) == bool(options.serial):
        raise Unusable(f"{verb} USER, or {verb} --serial S")
    match verb:
        case "list":
            if user:
                raise Unusable("list shows the credentials of everybody: it takes no USER")
            return revoking.show(options.data_dir)
        case "revoke":
            return revoking.revoke(options.data_dir, user, options.serial or "", options.reason)
        case "restore":
            return revoking.restore(options.data_dir, user, options.serial or "")
    if not user:
        raise Unusable("issue USER: whose credential?")
    options.user = user
    return _write(options)


def _write(options: argparse.Namespace) -> int:
    authority = security.read_authority(options.data_dir)
    if authority is None:
        raise revoking.no_server(options.data_dir)
    groups = tuple(dict.fromkeys([*security.identities.well_known_groups(options.user), *options.group]))
    lifetime = _lifetime(options, groups)
    server = options.server or _known_server(options.data_dir)
    now = SystemClock().now()
    pair = authority.client(options.user, groups, now, lifetime)
    security.record_issued(options.data_dir, pair, options.user, groups, now)
    text = security.Kubeconfig(server, authority.ca.certificate, options.user, pair, options.namespace).text()
    if options.out == "-":
        sys.stdout.write(text)
        return 0
    path = Path(options.out) if options.out else _default_path(options.data_dir, options.user)
    write_file(path, text.encode())
    print(path)
    return 0


def _lifetime(options: argparse.Namespace, groups: tuple[str, ...]) -> timedelta:
    wanted: timedelta | None = options.duration
    if security.identities.MASTERS not in groups:
        return wanted or _LIFETIME
    lifetime = wanted or _MASTERS_LIFETIME
    if lifetime > _MASTERS_LIFETIME_MAX:
        raise Unusable("a credential above all roles may live for a day at most (--duration 24h)")
    print(
        f"allot credentials: {options.user} will be above all roles until this runs out in {lifetime}",
        file=sys.stderr,
    )
    return lifetime


def _default_path(data_dir: Path, user: str) -> Path:
    directory = security.private_directory(data_dir / "credentials")
    return directory / f"{re.sub(r'[^A-Za-z0-9.-]', '_', user)}.kubeconfig"


def _known_server(data_dir: Path) -> str:
    """The address that the server wrote into the administrator's kubeconfig."""
    path = data_dir / "kubeconfig"
    if not path.exists():
        raise Unusable(f"{path} is missing, so the server's address is not known: use --server")
    import yaml

    try:
        return str(yaml.safe_load(path.read_text())["clusters"][0]["cluster"]["server"])
    except (yaml.YAMLError, UnicodeDecodeError, LookupError, TypeError):
        raise Unusable(f"{path} does not say where the server is: use --server") from None


def _duration(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,9})([smhd]?)", text)
    if match is None or int(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 90d, 12h or 30m")
    duration = timedelta(**{_UNITS[match[2]]: int(match[1])})
    if duration > _LIFETIME_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is longer than a cluster's own keys live")
    return duration
