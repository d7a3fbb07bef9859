"""KEP-4381: the vendor's kind of parameters, and what a driver's deployment brings, from the example."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from allot.api import User, errors
from allot.cel import compile_template
from allot.informers import discover
from allot.testing import api_server
from nodeagent.plugins import until

EXAMPLES = Path(__file__).parents[2] / "examples" / "numeric"
GROUP = "dra.e2e.example.com"
SCHEDULER = User("system:kube-scheduler", groups=("system:authenticated",))


def documents(name):
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


@asynccontextmanager
async def installed(*kinds):
    """A server to which the driver's deployment was applied, or those kinds of it alone."""
    async with api_server() as server:
        client = server.client()
        catalogue = await discover(client)
        for one in documents("frobnicator-driver.yaml"):
            if not kinds or one["kind"] in kinds:
                what = catalogue.of_kind(one["apiVersion"], one["kind"]).what
                version = one["apiVersion"].rpartition("/")[2]
                await client.resource(what.group, version, what.plural, namespaced=False).create(one)

        async def is_served():
            return (await discover(client)).of_kind(f"{GROUP}/v1alpha1", "ClaimParameters") is not None

        await until(is_served)
        yield server


def parameters_of(server, user=None):
    client = server.client(user) if user else server.client()
    return client.resource(GROUP, "v1alpha1", "claimparameters")


def tell(story, *kinds):
    async def whole():
        async with installed(*kinds) as server:
            await story(server)

    asyncio.run(asyncio.wait_for(whole(), 60))


def parameters(name="p", **spec):
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "ClaimParameters",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def test_the_vendors_bounds_and_default_hold_before_anybody_expands_a_template():
    """4381-VND-01, 4381-VND-02, 4381-VND-03, 4381-VND-04: the user sees no selector, and no model."""

    async def story(server):
        client = server.client()
        objects = parameters_of(server)
        classes = client.resource("resource.k8s.io", "v1alpha1", "resourceclasses", namespaced=False)
        (entry,) = (await classes.get("frobnicator")).fields["numericParameters"]
        template = compile_template(entry["celTemplate"])
        for count in (0, 17, "3"):
            with pytest.raises(errors.Invalid, match=r"spec\.numberOfFrobnicators"):
                await objects.create(parameters(numberOfFrobnicators=count))
        for count in (1, 16):
            made = await objects.create(parameters(f"p{count}", numberOfFrobnicators=count, env={"A": "b"}))
            assert made.fields["spec"]["env"] == {"A": "b"}
            assert template.expand(made.fields)["Required"] == count
        silent = await objects.create(parameters("silent"))
        assert template.expand(silent.fields) == {
            "kind": "Parameters",
            "apiVersion": "counter.dra.config.k8s.io/v1alpha1",
            "Required": 1,
        }
        hidden = await objects.create(parameters("hidden", Selector={"matchLabels": {}}))
        assert "Selector" not in hidden.fields["spec"]

    tell(story)


def test_the_deployments_binding_is_what_lets_the_scheduler_read_parameters():
    """4381-PAR-05, 4381-PAR-06, 4381-SEC-01: with it, it may read, and no more."""

    async def without(server):
        with pytest.raises(errors.Forbidden) as refused:
            await parameters_of(server, SCHEDULER).list()
        for named in (SCHEDULER.name, "list", "claimparameters", GROUP):
            assert named in str(refused.value)

    async def granted(server):
        await parameters_of(server).create(parameters())
        own = parameters_of(server, SCHEDULER)
        assert [one.name for one in (await own.list()).objects] == ["p"]
        assert (await own.get("p", "default")).name == "p"
        with pytest.raises(errors.Forbidden):
            await own.delete("p", "default")

    tell(without, "CustomResourceDefinition", "ResourceClass")
    tell(granted)


def test_what_a_user_writes_says_nothing_of_numeric_parameters():
    """4381-GEN-04, 4381-GEN-12: as for any driver of classic claims."""

    async def story(server):
        claim = next(one for one in documents("frobnicator-pod.yaml") if one["kind"] == "ResourceClaim")
        claims = server.client().resource("resource.k8s.io", "v1alpha1", "resourceclaims")
        made = await claims.create(claim)
        assert set(made.fields["spec"]) == {"resourceClassName", "parametersRef", "allocationMode"}

    tell(story)
