"""Compiled selectors, kept while they are in use.

Compiling costs a hundred times more than evaluating, and the same few texts come
back for every pod. The least recently used go first.
"""

from collections import OrderedDict

from .environment import Features
from .errors import CompileError
from .selector import Selector, compile_selector


class SelectorCache:
    """Not for several threads at once: each owner has its own."""

    def __init__(self, features: Features, size_max: int = 1024) -> None:
        self._features = features
        self._size_max = size_max
        self._kept: OrderedDict[str, Selector | CompileError] = OrderedDict()

    def get(self, expression: str) -> Selector:
        """The selector of a stored expression; a text that does not compile fails the same way again."""
        found = self._kept.get(expression)
        if found is None:
            found = self._compile(expression)
            self._kept[expression] = found
            if len(self._kept) > self._size_max:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(expression)
        if isinstance(found, CompileError):
            raise found
        return found

    def __len__(self) -> int:
        return len(self._kept)

    def _compile(self, expression: str) -> Selector | CompileError:
        try:
            return compile_selector(expression, self._features, stored=True)
        except CompileError as problem:
            return problem
