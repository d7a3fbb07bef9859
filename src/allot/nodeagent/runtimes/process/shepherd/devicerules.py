"""Which devices a cgroup of version 2 may open: rules as a small program of the kernel's.

The kernel hands the program a device: access and type in one word, major, minor. Each rule is a few
comparisons that jump to the next one; the first that fits lets it through.
"""

import ctypes
import os
import re
import struct
from collections.abc import Sequence
from pathlib import Path

from . import kernel

_LOAD, _ATTACH = 5, 8
_CGROUP_DEVICE_PROGRAM, _CGROUP_DEVICE = 15, 6
_TYPES = {"b": 1, "c": 2}
_ACCESS = {"m": 1, "r": 2, "w": 4}
_RULE = re.compile(r"([bc]) (\d+|\*):(\d+|\*) ([rwm]+)")

# registers: 1 the context, 2 type, 3 access, 4 major, 5 minor
_LOAD_WORD, _AND, _RSH, _JNE, _MOV, _MOV_REG, _EXIT = 0x61, 0x54, 0x74, 0x55, 0xB4, 0xBC, 0x95


def _code(code: int, to: int = 0, source: int = 0, jump: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", code, source << 4 | to, jump, value)


def program(rules: Sequence[str]) -> bytes:
    found = [
        _code(_LOAD_WORD, 2, 1),
        _code(_MOV_REG, 3, 2),
        _code(_AND, 2, value=0xFFFF),
        _code(_RSH, 3, value=16),
        _code(_LOAD_WORD, 4, 1, 4),
        _code(_LOAD_WORD, 5, 1, 8),
    ]
    for rule in rules:
        found += _rule(rule)
    return b"".join([*found, _code(_MOV, 0, value=0), _code(_EXIT)])


def _rule(rule: str) -> list[bytes]:
    match = _RULE.fullmatch(rule)
    if match is None:
        raise ValueError(f"{rule!r} is no rule for devices")
    kind, major, minor, access = match.groups()
    checks: list[tuple[int, int]] = [(2, _TYPES[kind])]
    checks += [(4, int(major))] if major != "*" else []
    checks += [(5, int(minor))] if minor != "*" else []
    denied = 7 & ~sum({_ACCESS[one] for one in access})
    tail = [_code(_MOV, 0, value=1), _code(_EXIT)]
    if denied:  # what is asked for beyond that must be nothing
        tail = [_code(_MOV_REG, 0, 3), _code(_AND, 0, value=denied), _code(_JNE, 0, jump=2), *tail]
    compared = [
        _code(_JNE, register, jump=len(checks) - at - 1 + len(tail), value=value)
        for at, (register, value) in enumerate(checks)
    ]
    return [*compared, *tail]


class _Loading(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("code", ctypes.c_uint64),
        ("license", ctypes.c_uint64),
        ("rest", ctypes.c_uint8 * 104),
    ]


class _Attaching(ctypes.Structure):
    _fields_ = [
        ("group", ctypes.c_uint32),
        ("program", ctypes.c_uint32),
        ("type", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
    ]


def attach(group: Path, rules: Sequence[str]) -> None:
    """It goes with the group. Raises OSError."""
    code = program(rules)
    text, words = ctypes.create_string_buffer(b"GPL"), ctypes.create_string_buffer(code, len(code))
    loading = _Loading(
        _CGROUP_DEVICE_PROGRAM, len(code) // 8, ctypes.addressof(words), ctypes.addressof(text)
    )
    loaded = kernel.bpf(_LOAD, loading)
    opened = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
    try:
        kernel.bpf(_ATTACH, _Attaching(opened, loaded, _CGROUP_DEVICE, 0))
    finally:
        os.close(opened)
        os.close(loaded)


def works(root: Path) -> bool:
    trial = root / "trial"
    try:
        trial.mkdir(exist_ok=True)
        attach(trial, ["c *:* m"])
    except (OSError, KeyError):
        return False
    finally:
        if trial.exists():
            trial.rmdir()
    return True
