"""Who a new pod is."""

import pytest

from allot.api import errors
from allot.store import Put

SPEC = {"containers": [{"name": "main", "image": "busybox"}]}


def pod(name, namespace="default", **spec):
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {**SPEC, **spec}}


@pytest.fixture
def core(allot_server):
    client = allot_server.client()
    return lambda plural, namespaced=True: client.resource("", "v1", plural, namespaced=namespaced)


def test_a_namespace_is_born_with_its_account(allot_server, core):
    """The first pod needs no luck, and no controller."""

    async def story():
        for number in range(10):
            name = f"team-{number}"
            await core("namespaces", False).create({"metadata": {"name": name}})
            made = await core("pods").create(pod("p", name))
            assert made.fields["spec"]["serviceAccountName"] == "default"
            account = await core("serviceaccounts").get("default", name)
            assert account.uid and account.metadata.creation_timestamp

    allot_server.run(story())


def test_an_account_that_is_there_before_its_namespace_stays_as_it_is(allot_server, core):
    """As after a namespace was brought back from a backup: who has a token of the account keeps it."""

    async def story():
        store = allot_server.api.store
        await core("namespaces", False).create({"metadata": {"name": "one"}})
        (entry,) = (await store.range("/objects/core/serviceaccounts/one/")).entries
        kept = entry.value.replace(b'"one"', b'"two"')
        key = "/objects/core/serviceaccounts/two/default"
        await store.transact([], [Put(key, kept)])
        await core("namespaces", False).create({"metadata": {"name": "two"}})
        assert (await store.get(key)).value == kept

    allot_server.run(story())


def test_a_dry_run_of_a_namespace_makes_no_account(allot_server, core):
    api = allot_server.client()

    async def story():
        await api.send("POST", "/api/v1/namespaces", {"dryRun": "All"}, b'{"metadata": {"name": "never"}}')
        found = await core("serviceaccounts").list("never")
        assert not found.objects

    allot_server.run(story())


def test_an_account_that_does_not_exist_is_refused_by_name(allot_server, core):
    wanted = 'error looking up service account default/robot: serviceaccount "robot" not found'
    with pytest.raises(errors.Forbidden, match=wanted):
        allot_server.run(core("pods").create(pod("p", serviceAccountName="robot")))


TOKEN = {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"serviceAccountName": "robot"}, "may not reference service accounts"),
        ({"serviceAccountName": "default"}, "may not reference service accounts"),
        ({"imagePullSecrets": [{"name": "registry"}]}, "may not reference secrets"),
        ({"volumes": [{"name": "v", **TOKEN}]}, "may not use ServiceAccountToken volume projections"),
    ],
)
@pytest.mark.parametrize("annotation", ["x", ""])
def test_a_mirror_pod_is_nobody_and_calling_a_pod_one_makes_no_account_pass(
    allot_server, core, annotation, spec, text
):
    def mirror(**spec):
        made = pod("p", **spec)
        made["metadata"]["annotations"] = {"kubernetes.io/config.mirror": annotation}
        return made

    with pytest.raises(errors.Forbidden, match=f"a mirror pod {text}"):
        allot_server.run(core("pods").create(mirror(**spec)))
    made = allot_server.run(core("pods").create(mirror()))
    assert "serviceAccountName" not in made.fields["spec"]


def test_an_account_that_was_made_a_moment_ago_will_do(allot_server, core):
    async def story():
        for number in range(20):
            name = f"robot-{number}"
            await core("serviceaccounts").create({"metadata": {"name": name, "namespace": "default"}})
            await core("pods").create(pod(f"p-{number}", serviceAccountName=name))

    allot_server.run(story())


def test_a_pod_pulls_images_with_the_secrets_of_its_account(allot_server, core):
    async def story():
        account = {"metadata": {"name": "robot", "namespace": "default"}}
        await core("serviceaccounts").create({**account, "imagePullSecrets": [{"name": "registry"}]})
        made = await core("pods").create(pod("p", serviceAccountName="robot"))
        assert made.fields["spec"]["imagePullSecrets"] == [{"name": "registry"}]
        own = [{"name": "mine"}]
        made = await core("pods").create(pod("q", serviceAccountName="robot", imagePullSecrets=own))
        assert made.fields["spec"]["imagePullSecrets"] == own

    allot_server.run(story())


def test_an_account_may_want_no_token_in_its_pods_and_a_pod_may_all_the_same(allot_server, core):
    async def story():
        account = {"metadata": {"name": "robot", "namespace": "default"}}
        await core("serviceaccounts").create({**account, "automountServiceAccountToken": False})
        made = await core("pods").create(pod("p", serviceAccountName="robot"))
        assert made.fields["spec"]["automountServiceAccountToken"] is False
        own = pod("q", serviceAccountName="robot", automountServiceAccountToken=True)
        assert (await core("pods").create(own)).fields["spec"]["automountServiceAccountToken"] is True
        plain = await core("pods").create(pod("r"))
        assert "automountServiceAccountToken" not in plain.fields["spec"]

    allot_server.run(story())
