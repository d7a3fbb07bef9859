"""Solve allocation problems from files: one JSON object a line, in the order of the files.

Exit status 0 when every file was answered, whatever the answers are; 2 when one is
not a problem. Such a file still gets its line, with the error, so that lines and
files always pair up. So does a file that we fail on ourselves; that is status 1.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from allot import allocation
from allot.base import RandomIds, SystemClock

ANSWERED = 0
OUR_FAULT = 1
NOT_A_PROBLEM = 2


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="an allocation problem as JSON; keys that are not known are refused",
    )
    parser.add_argument(
        "--policy",
        choices=sorted(allocation.POLICIES),
        default="least-waste",
        help="which of many plans (default: %(default)s)",
    )
    parser.add_argument("--explain", action="store_true", help="say why a problem does not fit")


def run(options: argparse.Namespace) -> int:
    clock = SystemClock()
    status = ANSWERED
    for file in options.files:
        started_s = clock.monotonic_s()
        try:
            answer = _answer(Path(file), options)
        except OSError as error:
            status = NOT_A_PROBLEM
            answer = _failed(file, error.strerror or str(error))
        except allocation.NotAProblem as error:
            status = NOT_A_PROBLEM
            answer = _failed(file, str(error))
        except Exception as error:  # the edge of the process: one file must not cost the others their answer
            status = status or OUR_FAULT
            answer = _failed(file, f"internal error, please report it: {type(error).__name__}: {error}")
        if options.explain:
            answer.setdefault("explanation", None)
        line = {"file": _printable(file), **answer, "seconds": round(clock.monotonic_s() - started_s, 6)}
        try:
            print(msgspec.json.encode(line).decode(), flush=True)
        except BrokenPipeError:  # whoever read us has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            break
    return status


def _printable(file: str) -> str:
    """A name as JSON can say it: bytes that are no UTF-8 are escaped."""
    return os.fsencode(file).decode("utf-8", "backslashreplace")


def _failed(file: str, error: str) -> dict[str, Any]:
    print(f"{file}: {error}", file=sys.stderr)
    return {"name": "", "verdict": "error", "results": [], "error": error}


def _answer(file: Path, options: argparse.Namespace) -> dict[str, Any]:
    problem = allocation.read_problem(_read(file))
    solved = allocation.solve(problem, allocation.POLICIES[options.policy])
    answer: dict[str, Any] = {
        "name": problem.name,
        "verdict": solved.verdict,
        "results": [_result(one) for one in solved.results(RandomIds())],
        "error": solved.error,
    }
    if options.explain:
        explanation = solved.explanation()
        answer["explanation"] = explanation.as_json() if explanation is not None else None
    return answer


def _read(file: Path) -> bytes:
    """The file's bytes, but never more than a problem may have: a device or a pipe need not end."""
    with file.open("rb") as opened:
        encoded = opened.read(allocation.PROBLEM_BYTES_MAX + 1)
    if len(encoded) > allocation.PROBLEM_BYTES_MAX:
        raise allocation.NotAProblem("", f"more than {allocation.PROBLEM_BYTES_MAX} bytes")
    return encoded


def _result(result: Any) -> dict[str, Any]:
    return {"devices": {}, **msgspec.to_builtins(result)}
