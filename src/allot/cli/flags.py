"""What the values of flags may be. A wrong one is refused before anything starts, by the name of its flag.

An empty value is mostly a variable that was not set: it is not taken for the folder one is in, say.
"""

import argparse
import math
import re
from itertools import pairwise
from pathlib import Path

from allot.api import Gates, UnknownGate, names
from allot.base import os_reason

PROCESS = "process"
_CONTAINERD = "cri:///run/containerd/containerd.sock"
_SECONDS_MAX = 2**31 - 1  # what a lease can say


def port_number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port between 0 and 65535")
    return int(text)


def path(text: str) -> Path:
    return Path(something(text))


def something(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("the value is empty")
    return text


def output_file(text: str) -> Path:
    """That can be written: said before the work is done whose outcome it is to hold."""
    wanted = path(text)
    was_there = wanted.exists()
    try:
        wanted.open("a").close()
        if not was_there:
            wanted.unlink()
    except OSError as refused:
        raise argparse.ArgumentTypeError(f"cannot write {wanted}: {os_reason(refused)}") from None
    return wanted


def runtime(text: str) -> str:
    """Of containers."""
    if text != PROCESS and not re.fullmatch(r"cri:///.+", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no runtime: write {PROCESS}, or cri:// and the path of a containerd's socket, "
            f"as in {_CONTAINERD}"
        )
    return text


def add_runtime(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--runtime",
        type=runtime,
        default=PROCESS,
        metavar="RUNTIME",
        help=f"{what}: {PROCESS}, or {_CONTAINERD} for those of a containerd, 1.7 or newer, that "
        "listens there (default: %(default)s)",
    )


def object_name(text: str) -> str:
    """Of an object in the API."""
    if names.subdomain(something(text)):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be the name of an object")
    return text


def namespace(text: str) -> str:
    """Empty means the one that is meant when none is named, as for kubectl."""
    if text and names.label_name(text):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be the name of a namespace")
    return text


def seconds(text: str) -> float:
    """More than none."""
    try:
        found_s = float(text)
    except ValueError:
        found_s = math.nan
    if not 0 < found_s <= _SECONDS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return found_s


def whole_seconds(text: str) -> int:
    found_s = seconds(text)
    if not found_s.is_integer():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of seconds")
    return int(found_s)


def count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return int(text)


def weighted(text: str) -> tuple[str, float]:
    """NAME=WEIGHT, or NAME alone."""
    name, equals, weight = text.partition("=")
    number = _number(weight) if equals else 1.0
    if not name or number is None or not 0 < number <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=WEIGHT with a weight above 0 and up to 100")
    return name, number


def shape(text: str) -> tuple[tuple[float, float], ...]:
    """PERCENT=SCORE, several, with growing percentages."""
    points = []
    for part in text.split(","):
        at, _, height = part.partition("=")
        place, score = _number(at), _number(height)
        if place is None or score is None or not 0 <= place <= 100 or not 0 <= score <= 10:
            raise argparse.ArgumentTypeError(f"{part!r} is not PERCENT=SCORE, from 0 to 100 and from 0 to 10")
        points.append((place, score))
    if any(left[0] >= right[0] for left, right in pairwise(points)):
        raise argparse.ArgumentTypeError(f"the percentages in {text!r} do not grow")
    return tuple(points)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def add_feature_gates(parser: argparse.ArgumentParser, what: str = "feature gates") -> None:
    """`what` says whose gates they are, where that is not plain."""
    parser.add_argument(
        "--feature-gates",
        type=feature_gates,
        default=Gates(),
        help=f"{what}, e.g. DRAListTypeAttributes=true,DRADeviceTaintRules=false",
    )


def feature_gates(text: str) -> Gates:
    changed = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, value = part.partition("=")
        if value.lower() not in ("true", "false"):
            raise argparse.ArgumentTypeError(f"{part!r} is not NAME=true or NAME=false")
        changed[name] = value.lower() == "true"
    try:
        return Gates(changed)
    except UnknownGate as unknown:
        raise argparse.ArgumentTypeError(str(unknown)) from None
