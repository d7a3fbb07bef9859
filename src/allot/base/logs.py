"""What components log, on stderr: one line each, with the time (UTC), the level and the module.

2026-11-16T09:57:57.123Z W allot.store.etcd.connection: etcd at 127.0.0.1:2379 does not answer: …

Programs that collect logs rather read JSON: a line is an object then, and what a message is about is in
fields of its own (`extra` of whoever logs), so that nobody has to take sentences apart.
"""

import argparse
import json
import logging
import os
import sys
import time

VARIABLE, FORMAT_VARIABLE = "ALLOT_LOG_LEVEL", "ALLOT_LOG_FORMAT"
LEVELS: dict[str, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def arguments(parser: argparse.ArgumentParser, usual: str) -> None:
    parser.add_argument(
        "--log-level",
        type=_level,
        metavar="LEVEL",
        default=os.environ.get(VARIABLE) or usual,
        help=f"{', '.join(LEVELS)}; default: {VARIABLE}, then {usual}",
    )
    parser.add_argument(
        "--log-format",
        type=_format,
        metavar="FORMAT",
        default=os.environ.get(FORMAT_VARIABLE) or TEXT,
        help=f"text, or json: one object a line; default: {FORMAT_VARIABLE}, then {TEXT}",
    )


def _level(text: str) -> int:
    found = LEVELS.get(text.lower())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(LEVELS)}")
    return found


def _format(text: str) -> str:
    if text not in _FORMATTERS:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(_FORMATTERS)}")
    return text


def begin(level: int = logging.ERROR, format: str = "") -> None:
    """From now on. Commands that answer and end say themselves what went wrong, and log nothing else."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_FORMATTERS[format or TEXT]())
    logging.basicConfig(level=level, handlers=[handler])


def begun() -> tuple[int, str]:
    """The level and the format of this process, for one that it starts."""
    root = logging.getLogger()
    is_json = any(isinstance(one.formatter, _Objects) for one in root.handlers)
    return root.getEffectiveLevel(), JSON if is_json else TEXT


class _Lines(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname).1s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """UTC, as objects have it, with milliseconds."""
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03}Z"


class _Objects(_Lines):
    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "module": record.name,
            "message": record.getMessage(),
            **{name: value for name, value in vars(record).items() if name not in _OF_EVERY_RECORD},
        }
        if record.exc_info:
            said["trace"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False, default=str)


_OF_EVERY_RECORD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}

TEXT, JSON = "text", "json"
_FORMATTERS = {TEXT: _Lines, JSON: _Objects}
