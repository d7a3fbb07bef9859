"""get, list and watch: which state a reader sees."""

import pytest

CONFIGS = "/api/v1/namespaces/default/configmaps"
ALL = "/api/v1/configmaps"


def make(api, *names, labels=None, namespace="default"):
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    return [api("POST", path, {"metadata": {"name": name, "labels": labels or {}}}).body for name in names]


def names(answer):
    return [item["metadata"]["name"] for item in answer.body["items"]]


def events(answer):
    return [(event["type"], event["object"]["metadata"].get("name")) for event in answer.body]


def test_a_list_is_in_order_and_says_when_it_was_true(api):
    make(api, "b", "a", "c")
    answer = api("GET", CONFIGS)
    assert names(answer) == ["a", "b", "c"]
    assert answer.body["kind"] == "ConfigMapList"
    newest = max(int(item["metadata"]["resourceVersion"]) for item in answer.body["items"])
    assert int(answer.body["metadata"]["resourceVersion"]) >= newest


def test_selectors_narrow_a_list(api):
    make(api, "a", labels={"app": "x"})
    make(api, "b", labels={"app": "y"})
    assert names(api("GET", CONFIGS, labelSelector="app=x")) == ["a"]
    assert names(api("GET", CONFIGS, fieldSelector="metadata.name=b")) == ["b"]
    assert names(api("GET", ALL, fieldSelector="metadata.namespace!=default")) == []
    wrong = api("GET", CONFIGS, fieldSelector="data.x=1")
    assert (wrong.status, wrong.body["reason"]) == (400, "BadRequest")


def test_pages_show_one_moment(api):
    """Whatever happens between two pages, all of them together are one list."""
    make(api, *"abcde")
    first = api("GET", CONFIGS, limit="2")
    assert names(first) == ["a", "b"]
    assert first.body["metadata"]["remainingItemCount"] == 3
    make(api, "aa", "f")
    api("DELETE", f"{CONFIGS}/d")
    token = first.body["metadata"]["continue"]
    second = api("GET", CONFIGS, **{"limit": "2", "continue": token})
    assert names(second) == ["c", "d"]
    third = api("GET", CONFIGS, **{"limit": "2", "continue": second.body["metadata"]["continue"]})
    assert names(third) == ["e"]
    assert "continue" not in third.body["metadata"]


def test_a_page_with_a_selector_is_filled_with_what_matches(api):
    make(api, *"abcd", labels={"app": "x"})
    make(api, "ab", labels={"app": "y"})
    page = api("GET", CONFIGS, limit="3", labelSelector="app=x")
    assert names(page) == ["a", "b", "c"]
    assert "remainingItemCount" not in page.body["metadata"]


def test_a_token_that_is_not_ours_is_refused(api):
    assert api("GET", CONFIGS, **{"continue": "garbage"}).status == 400


def test_a_list_as_it_was(api):
    then = make(api, "a")[0]["metadata"]["resourceVersion"]
    make(api, "b")
    assert names(api("GET", CONFIGS, resourceVersion=then, resourceVersionMatch="Exact")) == ["a"]
    assert names(api("GET", CONFIGS, resourceVersion=then, resourceVersionMatch="NotOlderThan")) == ["a", "b"]
    assert names(api("GET", CONFIGS, resourceVersion="0")) == ["a", "b"]


def test_the_past_that_is_compacted_is_gone(api):
    then = make(api, "a")[0]["metadata"]["resourceVersion"]
    make(api, "b", "c")
    api.run(api.store.compact(api.run(api.store.revision())))
    answer = api("GET", CONFIGS, resourceVersion=then, resourceVersionMatch="Exact")
    assert (answer.status, answer.body["reason"]) == (410, "Expired")


@pytest.mark.parametrize(
    "query, status",
    [
        ({"resourceVersionMatch": "Exact"}, 422),
        ({"resourceVersionMatch": "Nearly", "resourceVersion": "1"}, 422),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, 422),
        ({"resourceVersion": "abc"}, 422),
        ({"limit": "x"}, 400),
        ({"labelSelector": "a in b"}, 400),
    ],
)
def test_questions_that_make_no_sense_are_refused(api, query, status):
    assert api("GET", CONFIGS, **query).status == status


def test_a_watch_begins_with_what_is_there(api):
    make(api, "a", "b")
    seen = api("GET", CONFIGS, watch="true", timeoutSeconds="1")
    assert events(seen) == [("ADDED", "a"), ("ADDED", "b")]


@pytest.mark.parametrize("yes", ["true", "True", "1", "t", "yes", ""])
def test_every_spelling_of_yes_makes_a_watch(api, yes):
    """Clients in Python have long written True; upstream takes anything but 0 and false for a yes."""
    make(api, "a")
    seen = api("GET", CONFIGS, watch=yes, timeoutSeconds="1")
    assert events(seen) == [("ADDED", "a")]


@pytest.mark.parametrize("no", ["false", "False", "0"])
def test_every_spelling_of_no_makes_a_list(api, no):
    assert [line["kind"] for line in api("GET", CONFIGS, watch=no).body] == ["ConfigMapList"]


def test_a_watch_tells_everything_after_a_revision(api):
    first = make(api, "a")[0]["metadata"]["resourceVersion"]
    made = make(api, "b")[0]
    api("PUT", f"{CONFIGS}/b", {**made, "data": {"x": "1"}})
    api("DELETE", f"{CONFIGS}/b")
    seen = api("GET", CONFIGS, watch="true", resourceVersion=first, timeoutSeconds="1")
    assert events(seen) == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "b")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in seen.body]
    assert versions == sorted(set(versions))
    assert seen.body[-1]["object"]["data"] == {"x": "1"}


def test_a_selector_makes_a_world_of_its_own(api):
    """What begins to match is ADDED, what ceases to match is DELETED."""
    one = make(api, "a", labels={"app": "x"})[0]
    start = one["metadata"]["resourceVersion"]
    relabelled = {"metadata": {"name": "a", "labels": {"app": "y"}}}
    api("PUT", f"{CONFIGS}/a", relabelled)
    api("PUT", f"{CONFIGS}/a", {"metadata": {"name": "a", "labels": {"app": "x"}}})
    make(api, "other", labels={"app": "y"})
    seen = api("GET", CONFIGS, watch="1", resourceVersion=start, labelSelector="app=x", timeoutSeconds="1")
    assert events(seen) == [("DELETED", "a"), ("ADDED", "a")]
    left, came = (event["object"]["metadata"] for event in seen.body)
    assert left["labels"] == {"app": "x"}, "what it became is none of this watcher's business"
    assert int(start) < int(left["resourceVersion"]) < int(came["resourceVersion"])


def test_a_watch_of_one_namespace_hears_nothing_of_another(api):
    api("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
    start = api("GET", ALL).body["metadata"]["resourceVersion"]
    make(api, "a", namespace="other")
    make(api, "b")
    seen = api("GET", CONFIGS, watch="1", resourceVersion=start, timeoutSeconds="1")
    assert events(seen) == [("ADDED", "b")]


def test_the_end_of_the_initial_events_is_marked(api):
    make(api, "a")
    seen = api(
        "GET",
        CONFIGS,
        watch="1",
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
        timeoutSeconds="1",
    )
    assert events(seen) == [("ADDED", "a"), ("BOOKMARK", None)]
    metadata = seen.body[1]["object"]["metadata"]
    assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(metadata["resourceVersion"]) >= int(seen.body[0]["object"]["metadata"]["resourceVersion"])


def test_a_watch_on_which_nothing_happens_says_how_far_it_has_come(api):
    """After a minute, or sooner where the server is told so. Whoever did not ask hears nothing."""
    api.server.laggards.bookmark_s = 0.1
    start = make(api, "a")[0]["metadata"]["resourceVersion"]
    asked = {"watch": "1", "resourceVersion": start, "timeoutSeconds": "1"}
    seen = api("GET", CONFIGS, **asked, allowWatchBookmarks="true").body
    assert len(seen) > 2 and {event["type"] for event in seen} == {"BOOKMARK"}
    assert {event["object"]["metadata"]["resourceVersion"] for event in seen} == {start}
    assert api("GET", CONFIGS, **asked).body == []


def test_a_watch_from_a_compacted_past_is_told_to_start_over(api):
    start = make(api, "a")[0]["metadata"]["resourceVersion"]
    make(api, "b", "c")
    api.run(api.store.compact(api.run(api.store.revision())))
    seen = api("GET", CONFIGS, watch="1", resourceVersion=start, timeoutSeconds="1")
    assert [event["type"] for event in seen.body] == ["ERROR"]
    assert seen.body[0]["object"]["code"] == 410


def test_a_table_has_a_row_for_each_object(api):
    make(api, "a")
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    table = api("GET", CONFIGS, accept=accept).body
    assert table["kind"] == "Table"
    assert table["columnDefinitions"][0]["name"] == "Name"
    assert table["rows"][0]["cells"][0] == "a"
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert "object" not in api("GET", CONFIGS, accept=accept, includeObject="None").body["rows"][0]


def test_metadata_alone_can_be_asked_for(api):
    make(api, "a")
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    listed = api("GET", CONFIGS, accept=accept).body
    assert listed["kind"] == "PartialObjectMetadataList"
    assert set(listed["items"][0]) == {"kind", "apiVersion", "metadata"}


def test_paths_that_name_nothing_are_not_found(api):
    for path in (
        "/api/v1/nothings",
        "/apis/none.example.com/v1/x",
        "/api/v1/namespaces/default/nodes",
        "/nowhere",
    ):
        assert api("GET", path).status == 404
    assert api("POST", "/api/v1/configmaps", {"metadata": {"name": "a"}}).status == 405
    assert api("BREW", CONFIGS).status == 405


def test_a_row_holds_nothing_metadata_or_the_object(api):
    make(api, "a")
    table = "application/json;as=Table;g=meta.k8s.io;v=v1"
    row = lambda include: api("GET", CONFIGS, accept=table, includeObject=include).body["rows"][0]  # noqa: E731
    assert "object" not in row("None")
    assert row("Metadata")["object"]["kind"] == "PartialObjectMetadata"
    assert row("Object")["object"]["kind"] == "ConfigMap"
    assert api("GET", CONFIGS, accept=table, includeObject="Everything").status == 400


def test_a_watcher_hears_the_version_of_the_form_that_it_asked_for(api):
    """What is written once for all is written once for each form, and v1beta1 is another form than v1."""
    start = api("GET", CONFIGS).body["metadata"]["resourceVersion"]
    make(api, "a")
    for version in ("v1", "v1beta1"):
        accept = f"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v={version}"
        seen = api("GET", CONFIGS, accept=accept, watch="1", resourceVersion=start, timeoutSeconds="1")
        assert [event["object"]["apiVersion"] for event in seen.body] == [f"meta.k8s.io/{version}"]


def test_a_scanner_does_not_grow_the_metrics(api):
    for number in range(5):
        api("GET", f"/api/v1/namespaces/default/pods/web/x{number}")
        api("GET", f"/api/v1/namespaces/default/x{number}")
    assert "x1" not in api("GET", "/metrics").body
