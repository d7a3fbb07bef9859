"""From a class's template and a parameter object to the parameters of a model."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from allot.cel import CompileError, EvaluationError, Template, compile_template

from .model import BadData
from .reading import Expanded, read_parameters
from .registry import Registry

TEMPLATES_MAX: Final = 512


class Expansions:
    """Keeps templates compiled; classes are few."""

    def __init__(self) -> None:
        self._templates: dict[str, Template] = {}

    def expand(self, template: str, object: Mapping[str, Any], models: Registry) -> Expanded:
        """Raises BadData, in words for whoever wrote the class or the object."""
        try:
            expanded = self._compiled(template).expand(object)
        except CompileError as why:
            raise BadData(f"the template does not compile: {why.message}") from None
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
