"""The embedded default: one file, durable before it answers, everything readable from memory.

file      the log on disk: append, compact, sweep, checkpoint; blocking
writer    the one thread that writes: group commit, and what happens when writing fails
engine    the half on the event loop: decides transactions, answers reads
"""

from .engine import SqliteStore

__all__ = ["SqliteStore"]
