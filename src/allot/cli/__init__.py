"""The `allot` command: one module a command, imported only when it is asked for."""

from .main import main

__all__ = ["main"]
