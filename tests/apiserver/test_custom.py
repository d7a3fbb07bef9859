"""Kinds that users define."""

import asyncio
import copy

import pytest

from allot.store import Unavailable

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"

DEFINITION = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {
                        "name": "Ready",
                        "type": "string",
                        "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
                    },
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["size"],
                                "properties": {
                                    "size": {"type": "integer", "minimum": 1, "maximum": 10},
                                    "color": {"type": "string", "default": "red", "enum": ["red", "blue"]},
                                    "replicas": {"type": "integer"},
                                    "port": {"x-kubernetes-int-or-string": True},
                                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                    "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 4},
                                },
                            },
                            "status": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                                "properties": {"replicas": {"type": "integer"}},
                            },
                        },
                    }
                },
            }
        ],
    },
}


def define(api, change=lambda definition: None):
    definition = copy.deepcopy(DEFINITION)
    change(definition)
    made = api("POST", CRDS, definition)
    assert made.status == 201, made.body
    settle(api)
    return made.body


def settle(api):
    """The kind is served as soon as the server has seen its definition."""
    import asyncio

    api.run(asyncio.sleep(0.01))


def widget(name="w", **spec):
    return {"metadata": {"name": name}, "spec": {"size": 3, **spec}}


def test_a_definition_is_established_and_its_kind_is_served(api):
    made = define(api)
    assert {c["type"]: c["status"] for c in made["status"]["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    assert made["spec"]["names"]["singular"] == "widget" and made["spec"]["names"]["listKind"] == "WidgetList"
    assert made["status"]["storedVersions"] == ["v1"]
    created = api("POST", WIDGETS, widget())
    assert created.status == 201
    assert created.body["spec"] == {"size": 3, "color": "red"}
    assert api("GET", WIDGETS).body["kind"] == "WidgetList"
    resources = api("GET", "/apis/example.com/v1").body["resources"]
    assert {r["name"] for r in resources} == {"widgets", "widgets/status", "widgets/scale"}


def test_bad_fields_are_refused_by_name(api):
    define(api)
    wrong = api("POST", WIDGETS, widget(size=0, color="green", code="ABCDE"))
    assert wrong.status == 422
    assert wrong.causes == [
        ("spec.size", "FieldValueInvalid"),
        ("spec.color", "FieldValueNotSupported"),
        ("spec.code", "FieldValueTooLong"),
        ("spec.code", "FieldValueInvalid"),
    ]
    missing = api("POST", WIDGETS, {"metadata": {"name": "w"}, "spec": {}})
    assert missing.causes == [("spec.size", "FieldValueRequired")]
    mistyped = api("POST", WIDGETS, widget(size="big"))
    assert (mistyped.status, mistyped.causes) == (422, [("spec.size", "FieldValueTypeInvalid")])


def test_unknown_fields_are_pruned_unless_the_schema_keeps_them(api):
    define(api)
    made = api("POST", WIDGETS, widget(extra=1, free={"anything": [1]}, port="http"))
    assert made.body["spec"] == {"size": 3, "color": "red", "free": {"anything": [1]}, "port": "http"}
    assert made.warnings == ['299 - "unknown field \\"spec.extra\\""']
    assert api("POST", WIDGETS, widget("x", extra=1), fieldValidation="Strict").status == 400


def test_status_and_scale_are_doors_of_their_own(api):
    define(api)
    made = api("POST", WIDGETS, {**widget(replicas=2), "status": {"replicas": 9}}).body
    assert "status" not in made
    status = api("PUT", f"{WIDGETS}/w/status", {**made, "status": {"replicas": 1}}).body
    assert status["status"] == {"replicas": 1}
    scale = api("GET", f"{WIDGETS}/w/scale").body
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (2, 1)
    scale["spec"]["replicas"] = 5
    assert api("PUT", f"{WIDGETS}/w/scale", scale).body["spec"]["replicas"] == 5
    after = api("GET", f"{WIDGETS}/w").body
    assert after["spec"]["replicas"] == 5 and after["metadata"]["generation"] == 2


def test_columns_come_from_the_definition(api):
    define(api)
    made = api("POST", WIDGETS, widget()).body
    conditions = [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]
    api("PUT", f"{WIDGETS}/w/status", {**made, "status": {"conditions": conditions}})
    table = api("GET", WIDGETS, accept="application/json;as=Table;v=v1;g=meta.k8s.io").body
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Size", "Ready"]
    assert table["rows"][0]["cells"] == ["w", 3, "True"]


def test_a_second_version_shows_the_same_objects(api):
    def add_version(definition):
        second = copy.deepcopy(definition["spec"]["versions"][0])
        second.update(name="v2", storage=False)
        definition["spec"]["versions"].append(second)

    define(api, add_version)
    api("POST", WIDGETS, widget())
    other = api("GET", "/apis/example.com/v2/namespaces/default/widgets/w").body
    assert other["apiVersion"] == "example.com/v2" and other["spec"]["size"] == 3


def test_custom_kinds_know_merge_patch_but_no_strategic_merge(api):
    define(api)
    api("POST", WIDGETS, widget())
    merged = api("PATCH", f"{WIDGETS}/w", {"spec": {"size": 4}}, media="application/merge-patch+json")
    assert merged.body["spec"]["size"] == 4
    media = "application/strategic-merge-patch+json"
    assert api("PATCH", f"{WIDGETS}/w", {"spec": {"size": 4}}, media=media).status == 415


def test_a_definition_takes_its_objects_along(api):
    define(api)
    api("POST", WIDGETS, widget())
    api("DELETE", f"{CRDS}/widgets.example.com")
    for _ in range(100):
        if api("GET", f"{CRDS}/widgets.example.com").status == 404:
            break
        settle(api)
    settle(api)
    assert api("GET", WIDGETS).status == 404
    define(api)
    assert api("GET", WIDGETS).body["items"] == []


def test_a_definition_that_goes_ends_the_watches_of_its_kind(api):
    """Who watches would else wait for ever, and never hear of the kind when it is defined anew."""
    define(api)

    async def story():
        query = {"watch": "true", "timeoutSeconds": "30"}
        watching = asyncio.ensure_future(api.ask("GET", WIDGETS, query=query))
        await asyncio.sleep(0.1)
        await api.ask("DELETE", f"{CRDS}/widgets.example.com")
        async with asyncio.timeout(10):
            told = (await watching).body
        assert told[-1]["type"] == "ERROR" and told[-1]["object"]["code"] == 410
        again = await api.ask("GET", WIDGETS, query=query)
        assert again.status == 404

    api.run(story())


def test_definitions_that_make_no_sense_are_refused(api):
    def refused(change):
        definition = copy.deepcopy(DEFINITION)
        change(definition)
        answer = api("POST", CRDS, definition)
        assert answer.status == 422, answer.body
        return [field for field, _ in answer.causes]

    assert refused(lambda d: d["metadata"].update(name="other")) == ["metadata.name"]
    assert refused(lambda d: d["spec"].update(scope="Galaxy")) == ["spec.scope"]
    assert refused(lambda d: d["spec"]["versions"][0].update(storage=False)) == ["spec.versions"]
    schema = "spec.versions[0].schema.openAPIV3Schema"
    untyped = lambda d: d["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].update(x={})  # noqa: E731
    assert refused(untyped) == [f"{schema}.properties[x].type"]
    assert refused(lambda d: d["spec"].update(conversion={"strategy": "Webhook"})) == [
        "spec.conversion.strategy"
    ]


def test_schemas_that_could_not_be_kept_are_refused(api):
    where = "spec.versions[0].schema.openAPIV3Schema.properties"

    def refused(change):
        definition = copy.deepcopy(DEFINITION)
        change(definition, definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"])
        answer = api("POST", CRDS, definition)
        assert answer.status == 422, answer.body
        return [field for field, _ in answer.causes]

    def wrong_default(definition, properties):
        properties["spec"]["properties"]["size"]["default"] = True

    def closed(definition, properties):
        properties["spec"]["additionalProperties"] = False

    def labelled(definition, properties):
        properties["metadata"] = {"type": "object", "properties": {"labels": {"type": "object"}}}

    def official(definition, properties):
        definition["metadata"]["name"] = "widgets.example.k8s.io"
        definition["spec"]["group"] = "example.k8s.io"

    assert refused(wrong_default) == [f"{where}[spec].properties[size].default"]
    assert refused(closed) == [f"{where}[spec].additionalProperties"]
    assert refused(labelled) == [f"{where}[metadata]"]
    assert refused(official) == ["metadata.annotations[api-approved.kubernetes.io]"]


def with_property(schema):
    definition = copy.deepcopy(DEFINITION)
    version = definition["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["x"] = schema
    return definition


def test_a_pattern_that_can_backtrack_is_no_pattern(api):
    """A few dozen letters against such a pattern would hold up the server for hours."""
    path = "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[x]"
    for pattern in ("(?=a)(a+)+$", r"(a)\1", "("):
        answer = api("POST", CRDS, with_property({"type": "string", "pattern": pattern}))
        assert answer.causes == [(f"{path}.pattern", "FieldValueInvalid")], pattern
        hidden = {"type": "string", "allOf": [{"anyOf": [{"pattern": pattern}]}]}
        answer = api("POST", CRDS, with_property(hidden))
        assert answer.causes == [(f"{path}.allOf[0].anyOf[0].pattern", "FieldValueInvalid")], pattern
    assert api("POST", CRDS, with_property({"type": "string", "pattern": "^(a+)+$"})).status == 201
    bad = {"metadata": {"name": "w"}, "spec": {"size": 1, "x": "a" * 5000 + "!"}}
    assert api("POST", WIDGETS, bad).causes == [("spec.x", "FieldValueInvalid")]


def test_steps_too_small_to_count_are_no_server_error(api):
    api("POST", CRDS, with_property({"type": "number", "multipleOf": 1e-320}))
    good = {"metadata": {"name": "w"}, "spec": {"size": 1, "x": 5.5}}
    assert api("POST", WIDGETS, good).status == 201


def test_names_and_scope_of_a_definition_stay(api):
    made = define(api)
    made["spec"]["scope"] = "Cluster"
    answer = api("PUT", f"{CRDS}/widgets.example.com", made)
    assert ("spec.scope", "FieldValueInvalid") in answer.causes


ODD_ITEMS = [
    True,
    False,
    7,
    "x",
    [],
    [{}],
    [{"type": "string"}],
    {"type": 7},
    {"items": True},
    {"properties": []},
]


@pytest.mark.parametrize("items", ODD_ITEMS, ids=str)
def test_items_that_are_no_schema_are_refused_in_words(api, items):
    """They ended in a 500: a schema, a list of schemas or nothing of the kind, all were read as one."""
    for name in ("items", "additionalItems", "additionalProperties", "not"):
        definition = copy.deepcopy(DEFINITION)
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["spec"]["properties"]["list"] = {"type": "array", name: items}
        assert api("POST", CRDS, definition).status in (400, 422), name


def test_a_schema_may_allow_any_other_property(api):
    definition = copy.deepcopy(DEFINITION)
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["bag"] = {"type": "object", "additionalProperties": True}
    assert api("POST", CRDS, definition).status == 201
    made = api("POST", WIDGETS, {"metadata": {"name": "w"}, "spec": {"size": 1, "bag": {"a": [1]}}})
    assert (made.warnings, made.body["spec"]["bag"]) == ([], {"a": [1]})


def test_a_definition_goes_although_the_store_was_away_for_a_moment(api, monkeypatch):
    """Its objects go first, and the store may be away just then: that is tried again."""
    assert api("POST", CRDS, DEFINITION).status == 201
    assert api("POST", WIDGETS, {"metadata": {"name": "a"}, "spec": {"size": 1}}).status == 201
    asked, range_of = [], api.store.range

    async def away_at_first(prefix, *args, **options):
        if "/example.com/" in prefix:
            asked.append(prefix)
            if len(asked) == 1:
                raise Unavailable("the store is away", soon=True)
        return await range_of(prefix, *args, **options)

    monkeypatch.setattr(api.store, "range", away_at_first)
    path = f"{CRDS}/{DEFINITION['metadata']['name']}"
    assert api("DELETE", path).status == 200

    async def until_gone():
        async with asyncio.timeout(20):
            while (await api.ask("GET", path)).status != 404:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    api.run(until_gone())
    assert len(asked) > 1
