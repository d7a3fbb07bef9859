"""A write request as values: what the rules of a kind can see, without a server."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from allot.api import Action, Decision, FieldErrorText, Fields, Gates, User

NOW = datetime(2026, 11, 15, 8, 0, 0, tzinfo=UTC)


@dataclass(frozen=True)
class FakeContext:
    """Everything is allowed unless `permits` says what is; selectors are wrong when they say so."""

    user: User = field(default_factory=lambda: User("alice"))
    verb: str = "update"
    now: datetime = NOW
    gates: Gates = field(default_factory=Gates)
    version: str = "v1"
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    permits: tuple[Action, ...] | None = None
    classes: Mapping[str, Fields] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def namespace(self) -> Fields | None:
        return {"metadata": {"name": "default", "labels": dict(self.namespace_labels)}}

    def resource_class(self, name: str) -> Fields | None:
        return self.classes.get(name)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def authorize(self, action: Action) -> Decision:
        return Decision(self.permits is None or action in self.permits)

    def check_selector(self, expression: str) -> FieldErrorText | None:
        match expression:
            case "wrong":
                return FieldErrorText("invalid", "compilation failed")
            case "dear":
                return FieldErrorText("forbidden", "too complex, exceeds cost limit")
            case _:
                return None

    def check_attribute(self, expression: str) -> FieldErrorText | int:
        """An expression like `cost 7` costs 7."""
        word, _, cost = expression.partition(" ")
        return int(cost) if word == "cost" else FieldErrorText("invalid", "compilation failed")

    def check_template(self, text: str) -> FieldErrorText | None:
        """Templates that say `wrong` are."""
        return FieldErrorText("invalid", "compilation failed") if "wrong" in text else None

    def check_rules(self, openapi, path):
        return []

    def judge(self, shape, new, old):
        return []
