"""Asks the server, then deletes, disowns or lets go."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Iterable, Sequence
from itertools import batched  # type: ignore[attr-defined]
