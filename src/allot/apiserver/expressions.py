"""What is wrong with a new CEL expression, in the words of a field error."""

from allot.api import FieldErrorText, Gates


class CelExpressions:
    def __init__(self, gates: Gates) -> None:
        self._gates = gates

    def check_selector(self, expression: str) -> FieldErrorText | None:
        return None

    def check_attribute(self, expression: str) -> FieldErrorText | int:
        return 0
