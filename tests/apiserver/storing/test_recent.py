"""What was written last is at hand decoded, and is nobody's to change."""

import msgspec

from allot.api import Object, Request
from allot.apiserver import identities
from allot.apiserver.storing.recent import Recent

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}


def noted(recent: Recent, key: str, revision: int) -> Object:
    fields = {"metadata": {"name": key}, "kind": "Thing"}
    return recent.written(key, msgspec.json.encode(fields), revision, fields)


def test_an_object_is_found_at_the_revision_at_which_it_was_written_and_at_no_other():
    recent = Recent()
    first = noted(recent, "/a", 3)
    assert recent.at("/a", 3) is first
    assert recent.at("/a", 4) is None and recent.at("/b", 3) is None
    second = noted(recent, "/a", 5)
    assert recent.at("/a", 5) is second and recent.at("/a", 3) is None


def test_only_the_last_ones_are_kept_and_a_new_write_of_an_old_one_makes_it_young():
    recent = Recent(kept_max=2)
    noted(recent, "/a", 1)
    noted(recent, "/b", 2)
    again = noted(recent, "/a", 3)
    noted(recent, "/c", 4)
    assert recent.at("/b", 2) is None and recent.at("/a", 3) is again


def test_large_ones_are_fewer_and_the_last_one_is_always_there():
    """Decoded, five hundred objects of a megabyte were gigabytes."""
    recent = Recent(kept_bytes_max=100)
    small = noted(recent, "/small", 1)
    large = noted(recent, "/" + "x" * 80, 2)
    assert recent.at("/small", 1) is None and small._fields is None
    assert recent.at(large.name, 2) is large
    noted(recent, "/a", 3)
    noted(recent, "/b", 4)
    assert recent.at("/a", 3) and recent.at("/b", 4) and not recent.at(large.name, 2)
    for revision in range(5, 50):
        noted(recent, "/a", revision)
    assert recent.at("/b", 4), "the same object again takes no further room"


def test_its_outline_is_what_its_bytes_say():
    """Taken from the fields, and not decoded again."""
    written = noted(Recent(), "/a", 3)
    read = Object(written.raw)
    assert (written.name, written.kind, written.resource_version) == ("/a", "Thing", "3")
    assert written.metadata == read.metadata and written.fields == read.fields


def test_a_client_in_the_same_process_gets_the_object_that_the_answer_shows(api):
    async def ask(method, path, body):
        headers = {"content-type": "application/json"}
        return await api.server.handle(
            Request(method, path, {}, headers, msgspec.json.encode(body)), identities.ADMIN
        )

    claim = {"metadata": {"name": "one"}, "spec": {"devices": {"requests": [REQUEST]}}}
    made = api.runner.run(ask("POST", CLAIMS, claim))
    assert made.object is not None and made.object.raw == made.body
    got = api.runner.run(ask("GET", f"{CLAIMS}/one", {}))
    assert got.object is made.object


def test_what_came_before_is_not_touched_by_what_comes_after(api):
    """The next write starts from the decoded object of this one; both stay what their bytes say."""
    recent, seen = api.server.writer._repository.recent, []
    claim = {"metadata": {"name": "one"}, "spec": {"devices": {"requests": [REQUEST]}}}
    answer = api("POST", CLAIMS, claim)
    seen.append(recent.at("/objects/resource.k8s.io/resourceclaims/default/one", _version(answer)))
    for metadata in ({"labels": {"a": "b"}}, {"annotations": {"c": "d"}}, {"labels": {"a": "e"}}):
        answer = api(
            "PUT", f"{CLAIMS}/one", {**answer.body, "metadata": {**answer.body["metadata"], **metadata}}
        )
        assert answer.status == 200
        seen.append(recent.at("/objects/resource.k8s.io/resourceclaims/default/one", _version(answer)))
    assert all(one is not None and one.fields == msgspec.json.decode(one.raw) for one in seen)


def _version(answer) -> int:
    return int(answer.body["metadata"]["resourceVersion"])


def test_an_object_that_is_not_recent_any_more_goes_on_without_its_fields():
    """Whoever holds it for long does not hold a hundred dictionaries with it."""
    recent = Recent(kept_max=1)
    first = noted(recent, "/a", 1)
    second = noted(recent, "/a", 2)
    third = noted(recent, "/b", 3)
    assert first._fields is None and second._fields is None and third._fields is not None
    assert first.name == "/a" and first.fields == msgspec.json.decode(first.raw)
