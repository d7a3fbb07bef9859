"""Rules that a definition writes into its schema, judged by the server."""

import threading
from typing import Any

import pytest

from allot.api import errors
from allot.apiserver.deciding import rulebook


def definition(spec: dict[str, Any], *rules: Any, **more: Any) -> dict[str, Any]:
    """Of widgets; `rules` are about the whole object."""
    root = {"type": "object", "properties": {"spec": spec}, **more}
    if rules:
        root["x-kubernetes-validations"] = [one if isinstance(one, dict) else {"rule": one} for one in rules]
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


NUMBERS = {
    "type": "object",
    "properties": {"least": {"type": "integer"}, "most": {"type": "integer"}, "name": {"type": "string"}},
}


class Widgets:
    def __init__(self, server: Any) -> None:
        self._server = server
        client = server.client()
        self._definitions = client.resource(
            "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
        )
        self._widgets = client.resource("example.com", "v1", "widgets")

    def define(self, wanted: dict[str, Any]) -> Any:
        made = self._server.run(self._definitions.create(wanted))
        self._server.run(self._served())
        return made

    async def _served(self) -> None:
        for _ in range(2000):
            try:
                await self._widgets.list("default")
                return
            except errors.NotFound:
                continue

    def redefine(self, patch: dict[str, Any]) -> Any:
        return self._server.run(self._definitions.patch("widgets.example.com", patch))

    def make(self, spec: Any, name: str = "w") -> Any:
        body = {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
        return self._server.run(
            self._widgets.create({"apiVersion": "example.com/v1", "kind": "Widget", **body})
        )

    def change(self, patch: dict[str, Any]) -> Any:
        return self._server.run(self._widgets.patch("w", {"spec": patch}, "default"))


@pytest.fixture
def widgets(allot_server):
    return Widgets(allot_server)


def causes(refused: Any) -> list[tuple[str, str]]:
    return [(cause.field, cause.reason) for cause in refused.value.causes]


def test_a_rule_between_two_fields(widgets):
    widgets.define(definition({**NUMBERS, "x-kubernetes-validations": [{"rule": "self.least <= self.most"}]}))
    widgets.make({"least": 1, "most": 2})
    with pytest.raises(errors.Invalid, match=r"failed rule: self\.least <= self\.most") as refused:
        widgets.make({"least": 3, "most": 2}, "x")
    assert causes(refused) == [("spec", "FieldValueInvalid")]


def test_messages_reasons_and_paths_are_those_of_the_rule(widgets):
    rule = {
        "rule": "!has(self.spec.name) || self.spec.name.startsWith('w')",
        "messageExpression": "'not ' + self.spec.name + ', ' + self.metadata.name",
        "reason": "FieldValueForbidden",
        "fieldPath": ".spec.name",
    }
    widgets.define(definition(NUMBERS, rule))
    with pytest.raises(errors.Invalid, match="not other, x") as refused:
        widgets.make({"name": "other"}, "x")
    assert causes(refused) == [("spec.name", "FieldValueForbidden")]


def test_a_field_that_is_absent_is_an_error_of_the_rule_and_not_of_the_server(widgets):
    widgets.define(definition(NUMBERS, "self.spec.least > 0"))
    with pytest.raises(errors.Invalid, match=r"no such key: least evaluating rule: self\.spec\.least > 0"):
        widgets.make({})


def test_a_transition_is_judged_only_where_there_is_something_old(widgets):
    rule = {"rule": "self.least >= oldSelf.least", "message": "least only grows"}
    widgets.define(definition({**NUMBERS, "x-kubernetes-validations": [rule]}))
    widgets.make({"least": 3})
    widgets.change({"least": 4})
    with pytest.raises(errors.Invalid, match="least only grows"):
        widgets.change({"least": 2})


def test_an_optional_old_self_is_judged_from_the_beginning(widgets):
    rule = {"rule": "oldSelf.hasValue() || self.least == 0", "optionalOldSelf": True, "message": "begin at 0"}
    widgets.define(definition({**NUMBERS, "x-kubernetes-validations": [rule]}))
    with pytest.raises(errors.Invalid, match="begin at 0"):
        widgets.make({"least": 3})
    widgets.make({"least": 0})
    widgets.change({"least": 3})


def test_elements_of_a_list_are_found_again_by_their_keys(widgets):
    item = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string", "maxLength": 10}, "size": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.size >= oldSelf.size", "message": "shrunk"}],
    }
    listed = {
        "type": "array",
        "maxItems": 10,
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    widgets.define(definition({"type": "object", "properties": {"items": listed}}))
    widgets.make({"items": [{"name": "a", "size": 1}, {"name": "b", "size": 5}]})
    widgets.change({"items": [{"name": "b", "size": 6}, {"name": "c", "size": 0}, {"name": "a", "size": 1}]})
    with pytest.raises(errors.Invalid, match=r"spec\.items\[0\].*shrunk"):
        widgets.change({"items": [{"name": "b", "size": 5}]})


def test_what_was_stored_once_can_be_stored_again(widgets):
    """A rule that comes later is about what changes."""
    widgets.define(definition(NUMBERS))
    widgets.make({"least": 5, "most": 1, "name": "a"})
    spec = {**NUMBERS, "x-kubernetes-validations": [{"rule": "self.least <= self.most"}]}
    widgets.redefine({"spec": definition(spec)["spec"]})
    widgets._server.run(widgets._widgets.patch("w", {"metadata": {"labels": {"a": "b"}}}, "default"))
    with pytest.raises(errors.Invalid, match="failed rule"):
        for number in range(2000):  # until the new definition has come round
            widgets.change({"name": f"b{number}"})


def test_formats_are_values_and_odd_names_are_escaped(widgets):
    properties = {
        "until": {"type": "string", "format": "date-time"},
        "x-y": {"type": "string", "format": "duration"},
        "namespace": {"type": "string"},
        "any": {"x-kubernetes-int-or-string": True},
    }
    rules = [
        {"rule": "self.until > timestamp('2026-01-01T00:00:00Z')"},
        {"rule": "self.x__dash__y >= duration('1h')"},
        {"rule": "self.__namespace__ == 'a'"},
        {"rule": "self.any == 'many' || self.any == 3"},
    ]
    spec = {"type": "object", "properties": properties, "x-kubernetes-validations": rules}
    widgets.define(definition(spec))
    good = {"until": "2026-05-01T00:00:00Z", "x-y": "2h", "namespace": "a", "any": "many"}
    widgets.make(good)
    for number, wrong in enumerate(
        ({"until": "2025-01-01T00:00:00Z"}, {"x-y": "5m"}, {"namespace": "b"}, {"any": 0})
    ):
        with pytest.raises(errors.Invalid, match="failed rule"):
            widgets.make({**good, **wrong}, f"x{number}")


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"rule": "self.spec.least >"}, "Syntax error"),
        ({"rule": "self.spec.nothing == 1"}, "undefined field 'nothing'"),
        ({"rule": "self.spec.least == 'a'"}, "found no matching overload"),
        ({"rule": "self.spec.least + 1"}, "must evaluate to a bool"),
        ({"rule": "authorizer.allowed()"}, "undeclared reference to 'authorizer'"),
        ({"rule": ""}, "rule is not specified"),
        ({"rule": "true", "messageExpression": "1"}, "must evaluate to a string"),
        ({"rule": "true", "reason": "Because"}, "Unsupported value"),
    ],
)
def test_a_rule_that_cannot_be_read_is_refused_with_the_definition(widgets, rule, text):
    with pytest.raises(errors.Invalid) as refused:
        widgets.define(definition(NUMBERS, rule))
    assert text in str(refused.value)
    assert "x-kubernetes-validations[0]" in str(refused.value)


def test_a_transition_where_nothing_can_be_found_again_is_refused(widgets):
    item = {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    listed = {"type": "array", "maxItems": 3, "items": item}
    with pytest.raises(errors.Invalid, match="uncorrelatable"):
        widgets.define(definition({"type": "object", "properties": {"items": listed}}))


def test_a_rule_that_may_cost_too_much_is_refused_unless_the_schema_is_bounded(widgets):
    rule = [{"rule": "self.all(a, self.all(b, a == b))"}]

    def listed(**bounds: int) -> dict[str, Any]:
        text = {"type": "string", **({"maxLength": 10} if bounds else {})}
        items = {"type": "array", "items": text, "x-kubernetes-validations": rule, **bounds}
        return definition({"type": "object", "properties": {"items": items}})

    with pytest.raises(errors.Invalid, match="rule cost exceeds budget by factor of more than 100x"):
        widgets.define(listed())
    widgets.define(listed(maxItems=20))


EVERY_PAIR = "self.spec.items.all(a, self.spec.items.all(b, a + b == b + a))"


def lists(most: int) -> dict[str, Any]:
    items = {"type": "array", "maxItems": most, "items": {"type": "integer"}}
    return {"type": "object", "properties": {"items": items}}


@pytest.mark.parametrize(
    ("rules", "length", "text"),
    [
        (
            1,
            900,
            "no further validation rules will be run due to call cost exceeds limit for rule: self.spec",
        ),
        (30, 300, "validation failed due to running out of cost budget, no further validation rules will be"),
    ],
)
def test_what_rules_really_cost_is_counted_and_ends_the_judging(widgets, rules, length, text):
    """One alone, and all together. The estimate trusts bounds that the object may come near to."""
    widgets.define(definition(lists(length), *[EVERY_PAIR] * rules))
    widgets.make({"items": [1, 2, 3]}, "short")
    with pytest.raises(errors.Invalid, match=text):
        widgets.make({"items": [*range(length)]})


def test_a_message_that_costs_too_much_lets_nothing_pass(widgets):
    said = {"rule": "self.spec.items.size() < 2", "messageExpression": f"{EVERY_PAIR} ? 'many' : ''"}
    widgets.define(definition(lists(900), said))
    with pytest.raises(errors.Invalid, match="many"):
        widgets.make({"items": [1, 2, 3]})
    with pytest.raises(
        errors.Invalid, match="messageExpression evaluation failed due to running out of cost"
    ):
        widgets.make({"items": [*range(900)]})


def test_a_message_that_may_cost_too_much_is_refused_with_the_definition(widgets):
    said = {"rule": "true", "messageExpression": f"{EVERY_PAIR} ? 'many' : ''"}
    text = (
        r"validations\[0\]\.messageExpression: Forbidden: estimated messageExpression cost exceeds budget by"
    )
    with pytest.raises(errors.Invalid, match=text):
        widgets.define(definition(lists(1500), said))


@pytest.mark.parametrize(
    ("rule", "is_cheap"),
    [
        ({"rule": "self.all(a, a > 0)"}, True),
        ({"rule": "self.all(a, self.all(b, a + b > 0))"}, False),
        ({"rule": "true", "messageExpression": "self.all(a, self.all(b, a + b > 0)) ? 'a' : 'b'"}, False),
    ],
)
def test_rules_are_read_aside_and_judged_aside_unless_that_takes_a_moment(
    widgets, monkeypatch, rule, is_cheap
):
    """Also the first time, when nobody knows yet how long it takes."""
    done: list[tuple[str, bool]] = []

    def noting(what: str) -> None:
        plain = getattr(rulebook, what)

        def noted(*given: Any) -> Any:
            done.append((what, threading.current_thread() is threading.main_thread()))
            return plain(*given)

        monkeypatch.setattr(rulebook, what, noted)

    numbers = {"type": "array", "maxItems": 300, "items": {"type": "integer"}}
    widgets.define(definition({**numbers, "x-kubernetes-validations": [rule]}))
    noting("read")
    noting("judge")
    widgets.make([1, 2], "first")
    assert done == [("read", False), ("judge", False)]
    done.clear()
    widgets.make([1, 2], "second")
    assert done == [("judge", is_cheap)]


@pytest.mark.parametrize("items", [True, 7, "x", [{}], {"type": 7}])
def test_rules_in_a_schema_that_is_none_are_not_read(widgets, items):
    odd = {"type": "array", "items": items, "x-kubernetes-validations": [{"rule": "true"}]}
    with pytest.raises((errors.Invalid, errors.BadRequest)):
        widgets.define(definition({"type": "object", "properties": {"odd": odd}}))


@pytest.mark.parametrize("rules", [7, "x", {}, [7], [None], [{"rule": 7}], [{"rule": "true", "message": 7}]])
def test_rules_that_are_no_rules_are_refused_in_words(widgets, rules):
    spec = {"type": "object", "x-kubernetes-validations": rules}
    with pytest.raises((errors.Invalid, errors.BadRequest)):
        widgets.define(definition(spec))


def test_rules_that_take_long_do_not_occupy_the_thread_for_large_requests(allot_server, monkeypatch):
    """An object that is dear to judge kept every large request of others waiting for as long."""
    widgets, where = Widgets(allot_server), []
    numbers = {"type": "array", "maxItems": 400, "items": {"type": "integer"}}
    widgets.define(definition(numbers, "self.spec.all(a, self.spec.all(b, a != b || a == b))"))
    judge = rulebook.judge

    def noted(*args: Any) -> Any:
        where.append(threading.current_thread().name)
        return judge(*args)

    monkeypatch.setattr(rulebook, "judge", noted)
    widgets.make([1, 2, 3])
    assert where and all(name.startswith("aside-judging") for name in where)
