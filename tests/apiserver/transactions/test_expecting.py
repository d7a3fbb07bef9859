"""A member that writes nothing: what the others rely on is so at the commit, or nothing is written (TXN4)."""

import pytest

from allot.api import User
from allot.api.transaction import ABSENT

from .test_carrying import CONFIGS, PODS, config, create, merge, names, together


def expect(name, said, path=CONFIGS):
    return {"method": "GET", "path": f"{path}/{name}", "expect": said}


def version(answer):
    return answer.body["metadata"]["resourceVersion"]


def test_what_is_as_expected_lets_the_others_through(api):
    known = version(api("POST", CONFIGS, config("known")))
    done = together(api, expect("known", known), expect("other", ABSENT), create(CONFIGS, config("a")))
    assert [one["code"] for one in done.body["status"]["results"]] == [200, 200, 201]
    assert done.body["status"]["results"][0]["body"]["status"] == "Success"
    assert names(api) == ["a", "known"]
    assert version(api("GET", f"{CONFIGS}/known")) == known, "nobody wrote to it"


@pytest.mark.parametrize("careful", [False, True], ids=["stored", "dry run"])
def test_what_is_not_as_expected_ends_it_and_names_itself(api, careful):
    old = version(api("POST", CONFIGS, config("known")))
    new = version(
        api("PATCH", f"{CONFIGS}/known", {"data": {"x": "1"}}, media="application/merge-patch+json")
    )
    more = {"dryRun": "All"} if careful else {}
    for wrong, why in (
        (expect("known", old), f"expected to be at {old}, and is at {new}"),
        (expect("known", ABSENT), f"expected to be absent, and is at {new}"),
        (expect("other", old), f"expected to be at {old}, and is not there"),
    ):
        done = together(api, create(CONFIGS, config("a")), wrong, create(CONFIGS, config("b")), **more)
        assert done.status == 409 and done.body["message"].startswith("spec.requests[1]: ")
        assert why in done.body["message"]
        assert names(api) == ["known"]


def test_a_rival_that_writes_between_the_look_and_the_commit_is_noticed(api):
    known = version(api("POST", CONFIGS, config("known")))
    behind = api.server._front.behind
    plain, at = behind.transact, []

    async def late(compares, changes):
        if not at:
            at.append("rival")
            api.server._front.behind.transact = plain
            found = await behind.get("/objects/core/configmaps/default/known")
            await plain((), (type(changes[0])(found.key, found.value),))
        return await plain(compares, changes)

    api.server._front.behind.transact = late
    done = together(api, expect("known", known), create(CONFIGS, config("a")))
    assert at and done.status == 409 and names(api) == ["known"]


def test_what_a_member_before_it_wrote_is_at_no_version_that_anybody_knows(api):
    known = version(api("POST", CONFIGS, config("known")))
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"resourceVersion": known}}
    delete = {"method": "DELETE", "path": f"{CONFIGS}/known", "body": options}
    for wrong, why in (
        (expect("known", known), f"to be at {known}, and is at that of this transaction"),
        (delete, "ResourceVersion in object meta: that of this transaction"),
    ):
        done = together(api, merge(f"{CONFIGS}/known", {"data": {"x": "1"}}), wrong)
        assert done.status == 409 and done.body["message"].endswith(why)
    done = together(api, create(CONFIGS, config("a")), expect("a", ABSENT))
    assert done.status == 409 and names(api) == ["known"]


def test_null_says_no_more_than_nothing(api):
    """Libraries that leave nothing out send it."""
    nothing = {"expect": None, "with": None, "body": None}
    known = version(api("POST", CONFIGS, config("known")))
    looked_at = {**nothing, **expect("known", known)}
    assert together(api, looked_at, {**nothing, **create(CONFIGS, config("a"))}).status == 201


def test_who_may_not_read_an_object_may_not_expect_anything_of_it(api):
    role = {"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]}
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    api("POST", f"{rbac}/roles", {"metadata": {"name": "writer"}, **role})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "writer"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}
    api(
        "POST",
        f"{rbac}/rolebindings",
        {"metadata": {"name": "ann"}, "roleRef": reference, "subjects": [subject]},
    )
    ann = User("ann", groups=("system:authenticated",))
    assert together(api, create(CONFIGS, config("a")), user=ann).status == 201
    done = together(api, expect("secret", ABSENT), create(CONFIGS, config("b")), user=ann)
    assert done.status == 403 and 'cannot get resource "configmaps"' in done.body["message"]
    assert names(api) == ["a"]


@pytest.mark.parametrize(
    ("member", "why"),
    [
        (expect("a", "x"), "a resourceVersion is wanted"),
        (expect("a", "0"), "a resourceVersion is wanted"),
        (expect("a", "٣"), "a resourceVersion is wanted"),
        (expect("a", "9" * 40), "a resourceVersion is wanted"),
        ({**expect("a", "1"), "method": "PUT", "body": {}}, "said of a GET"),
        ({**expect("a", "1"), "body": {}}, "nothing else to say"),
        ({**expect("a", "1"), "with": "status"}, "nothing else to say"),
        ({"method": "GET", "path": CONFIGS, "expect": "1"}, "said of a GET of one object"),
        ({"method": "GET", "path": f"{PODS}/a/status", "expect": "1"}, "said of a GET of one object"),
        ({"method": "GET", "path": f"{PODS}/a?watch=1", "expect": "1"}, "expect"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_done(api, member, why):
    done = together(api, create(CONFIGS, config("a")), member)
    assert done.status == 400 and why in done.body["message"]
    assert names(api) == []


def test_anything_that_is_stored_can_be_expected_to_be_so(api):
    """Every kind, in each of its versions, in a namespace or in none; a namespace lies in itself."""
    kinds = [kind for kind in api.server.registry.kinds() if "get" in kind.verbs]
    assert {True, False} == {kind.namespaced for kind in kinds} and len(kinds) > 40
    for kind in kinds:
        for served in kind.versions:
            base = f"/apis/{kind.group}/{served.name}" if kind.group else f"/api/{served.name}"
            inside = "/namespaces/default" if kind.namespaced else ""
            member = expect("there", ABSENT, f"{base}{inside}/{kind.plural}")
            done = together(api, member, create(CONFIGS, config("new")), dryRun="All")
            assert done.status == 201, (kind.plural, done.body)
            done = together(api, {**member, "expect": "1"}, create(CONFIGS, config("new")), dryRun="All")
            assert done.status == 409, (kind.plural, done.body)
            if kind.namespaced:
                astray = expect("there", ABSENT, f"{base}/{kind.plural}")
                done = together(api, astray, create(CONFIGS, config("new")), dryRun="All")
                assert done.status == 400, (kind.plural, done.body)


def test_a_namespace_is_expected_to_stay_as_it_was_read(api):
    path = "/api/v1/namespaces"
    known = version(api("POST", path, {"metadata": {"name": "shop"}}))
    assert together(api, expect("shop", known, path), create(CONFIGS, config("a"))).status == 201
    api("PATCH", f"{path}/shop", {"metadata": {"labels": {"a": "b"}}}, media="application/merge-patch+json")
    done = together(api, expect("shop", known, path), create(CONFIGS, config("b")))
    assert done.status == 409 and names(api) == ["a"]


def test_a_transaction_writes_something(api):
    done = together(api, expect("a", ABSENT))
    assert done.status == 400 and "writes something" in done.body["message"]
