"""From a class's template and a parameter object to the parameters of a model."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from allot.cel import COST_LIMIT, CompileError, CostExceeded, EvaluationError, Template, compile_template

from .model import BadData
from .reading import Expanded, read_parameters
from .registry import Registry

TEMPLATES_MAX: Final = 512
AT_ONCE_COST: Final = 4_000
"""What an expansion may cost where others wait: some ten milliseconds. Templates that read a field or two
cost ten; only those that go through long lists of an object cost more than this."""


class Expansions:
    """Keeps templates compiled; classes are few."""

    def __init__(self) -> None:
        self._templates: dict[str, Template] = {}

    def expand_at_once(self, template: str, object: Mapping[str, Any], models: Registry) -> Expanded | None:
        """The same as `expand`, or None where that may take long."""
        try:
            return self._expand(template, object, models, AT_ONCE_COST)
        except CostExceeded:
            return None

    def expand(self, template: str, object: Mapping[str, Any], models: Registry) -> Expanded:
        """Raises BadData, in words for whoever wrote the class or the object."""
        return self._expand(template, object, models, COST_LIMIT)

    def _expand(self, template: str, object: Mapping[str, Any], models: Registry, most: int) -> Expanded:
        try:
            expanded = self._compiled(template).expand(object, most)
        except CompileError as why:
            raise BadData(f"the template does not compile: {why.message}") from None
        except CostExceeded:
            raise
        except EvaluationError as why:
            raise BadData(f"the template fails: {why}") from None
        read = read_parameters(expanded, models)
        return read._replace(key=msgspec.json.encode(expanded, order="deterministic"))

    def _compiled(self, text: str) -> Template:
        known = self._templates.get(text)
        if known is None:
            if len(self._templates) >= TEMPLATES_MAX:
                self._templates.clear()
            known = self._templates[text] = compile_template(text, stored=True)
        return known
