"""Prepare and unprepare over a real socket: once, again, after a crash, after a reboot, wrongly."""

import asyncio
import shutil

import msgspec
import pytest

from allot.driver import BadState, Config, Device, DeviceStatus, Edits, Places, Pool, Ready
from allot.wire import UnixSockets, dra, registration
from driver.world import NAME, NODE, prepare, tell, until


def test_a_claim_is_prepared_and_a_container_gets_what_the_author_gave():
    async def story(world):
        claim = await world.claim("a", "gpu-0", "gpu-1")
        async with world.driver() as kubelet:
            answer = (await kubelet.prepare(claim))[claim.uid]
            assert answer.error == ""
            assert [(one.request_names, one.pool_name, one.device_name) for one in answer.devices] == [
                (("r",), NODE, "gpu-0"),
                (("r",), NODE, "gpu-1"),
            ]
            assert world.env(answer) == ("GPU_0=gpu-0", "GPU_1=gpu-1")
            assert (await kubelet.unprepare(claim))[claim.uid].error == ""
            assert world.files() == set()

    tell(story)


def test_a_repeated_call_hears_the_same_and_the_author_nothing():
    """KIT3: also without the API, and a CDI file that was lost comes back."""
    calls = []

    def once(claim):
        calls.append(claim.name)
        return prepare(claim)

    async def story(world):
        claim = await world.claim("a", "gpu-0")
        async with world.driver(once, unprepare=lambda entry: calls.append(f"un{entry.name}")) as kubelet:
            first = await kubelet.prepare(claim)
            shutil.rmtree(world.places.cdi)
            await world.client.resource("resource.k8s.io", "v1", "resourceclaims").delete("a", "default")
            assert await kubelet.prepare(claim) == first
            assert world.env(first[claim.uid]) == ("GPU_0=gpu-0",)
            for _ in range(2):
                assert (await kubelet.unprepare(claim))[claim.uid].error == ""
        assert calls == ["a", "una"]

    tell(story)


def test_a_driver_that_begins_anew_answers_as_before():
    """N5: and brings back lost CDI files, before anybody asks; files of nobody's claims go."""
    calls = []

    def once(claim):
        calls.append(claim.name)
        return prepare(claim)

    async def story(world):
        claim = await world.claim("a", "gpu-0")
        async with world.driver(once) as kubelet:
            first = await kubelet.prepare(claim)
        files = world.files()
        shutil.rmtree(world.places.cdi)
        world.places.cdi.mkdir()
        (world.places.cdi / f"{NAME}-claim_left.json").write_text("{}")
        (world.places.cdi / "other.com-gpu_x.json").write_text("{}")
        async with world.driver(once) as kubelet:
            assert world.files() == files | {"other.com-gpu_x.json"}
            assert await kubelet.prepare(claim) == first
            assert calls == ["a"]

    tell(story)


@pytest.mark.parametrize("files", ["gone", "torn"])
def test_after_a_reboot_a_claim_is_prepared_again(files):
    """What was done to the devices is gone with the boot in which it was done. So are CDI files, or, where
    they lie on a disk, there is what a power cut left of them."""
    calls = []

    def again(claim):
        calls.append(claim.name)
        return prepare(claim)

    async def story(world):
        claim = await world.claim("a", "gpu-0")
        async with world.driver(again, boot="one") as kubelet:
            await kubelet.prepare(claim)
        for file in world.places.cdi.iterdir():
            file.unlink() if files == "gone" else file.write_bytes(b"")
        async with world.driver(again, boot="two") as kubelet:
            assert world.files() == set()
            answer = await kubelet.prepare(claim)
            assert world.env(answer[claim.uid]) == ("GPU_0=gpu-0",)
        assert calls == ["a", "a"]

    tell(story)


def test_what_was_begun_is_undone_though_nobody_heard_that_it_was_done():
    """STATE1: the author's `prepare` fails half way; the kubelet gives the pod up and unprepares."""
    undone = []

    def broken(claim):
        raise RuntimeError("the card fell off the bus")

    def undo(entry):
        undone.append([(one.pool, one.device) for one in entry.devices])

    async def story(world):
        claim = await world.claim("a", "gpu-3")
        async with world.driver(broken) as kubelet:
            assert (await kubelet.prepare(claim))[claim.uid].error == "the card fell off the bus"
        async with world.driver(broken, unprepare=undo) as kubelet:
            assert (await kubelet.unprepare(claim))[claim.uid].error == ""
            assert (await kubelet.unprepare(claim))[claim.uid].error == ""
        assert undone == [[(NODE, "gpu-3")]]

    tell(story)


def test_an_error_of_one_claim_is_that_claim_s_alone():
    """KIT1: of a batch, in both directions."""

    def picky(claim):
        if claim.name == "bad":
            raise ValueError("not this one")
        return prepare(claim)

    def picky_back(entry):
        if entry.name == "stuck":
            raise OSError("busy")

    async def story(world):
        good, bad = await world.claim("good", "gpu-0"), await world.claim("bad", "gpu-1")
        stuck, open_ = await world.claim("stuck", "gpu-2"), await world.claim("open")
        async with world.driver(picky, unprepare=picky_back) as kubelet:
            unknown = dra.Claim("default", "no-such-uid", "nobody")
            another = dra.Claim("default", "another-uid", "good")
            odd = dra.Claim("", "odd-uid", "a/b")
            answers = await kubelet.prepare(good, bad, stuck, open_, unknown, another, odd)
            said = {uid: answer.error for uid, answer in answers.items()}
            assert said[good.uid] == said[stuck.uid] == ""
            assert said[bad.uid] == "not this one"
            assert said[open_.uid] == "claim default/open is not allocated"
            assert "claim default/nobody cannot be read" in said["no-such-uid"]
            assert "has the uid" in said["another-uid"] and "was made anew" in said["another-uid"]
            assert "cannot be read" in said["odd-uid"]
            assert [answers[uid].devices for uid in (bad.uid, open_.uid)] == [(), ()]
            back = await kubelet.unprepare(good, stuck, unknown)
            assert {uid: answer.error for uid, answer in back.items()} == {
                good.uid: "",
                stuck.uid: "busy",
                "no-such-uid": "",
            }
            assert 'allot_driver_claim_errors_total{operation="prepare"} 5' in kubelet.metrics.text()

    tell(story)


def test_a_claim_that_could_not_be_unprepared_is_unprepared_again_also_by_a_later_process():
    """STATE1: until the author's `unprepare` has come back, the claim is known."""
    tried = []

    def busy_at_first(entry):
        tried.append([one.device for one in entry.devices])
        if len(tried) < 3:
            raise OSError("busy")

    async def story(world):
        claim = await world.claim("a", "gpu-0")
        async with world.driver(unprepare=busy_at_first) as kubelet:
            await kubelet.prepare(claim)
            for _ in range(2):
                assert (await kubelet.unprepare(claim))[claim.uid].error == "busy"
        async with world.driver(unprepare=busy_at_first) as kubelet:
            assert (await kubelet.unprepare(claim))[claim.uid].error == ""
        assert tried == [["gpu-0"]] * 3
        assert world.files() == set()

    tell(story)


def test_of_a_claim_with_devices_of_several_drivers_each_prepares_its_own():
    async def story(world):
        foreign = await world.claim("foreign", "nic-0", driver="nic.example.com")
        async with world.driver() as kubelet:
            answer = (await kubelet.prepare(foreign))[foreign.uid]
            assert answer.error == f"claim default/foreign has no device of {NAME}"
            assert answer.devices == ()

    tell(story)


def test_a_kubelet_that_gave_up_waiting_hears_what_came_of_it_when_it_asks_again():
    """KIT2: the author's function is called once, and to its end."""
    calls = []

    async def slow(claim):
        calls.append(claim.name)
        await asyncio.sleep(1)
        return prepare(claim)

    async def story(world):
        claim = await world.claim("a", "gpu-0")
        async with world.driver(slow) as kubelet:
            with pytest.raises(Exception, match="DEADLINE_EXCEEDED"):
                await dra.prepare(kubelet.channel, dra.V1, [claim], timeout_s=0.3)
            answers = await asyncio.gather(*(kubelet.prepare(claim) for _ in range(3)))
            assert [one[claim.uid].error for one in answers] == ["", "", ""]
        assert calls == ["a"]

    tell(story)


def test_what_nobody_waits_for_any_more_is_not_begun():
    """KIT2: a kubelet that began anew may have said the opposite meanwhile, and would never hear of it."""
    calls = []
    begins, goes_on = asyncio.Event(), asyncio.Event()

    async def slow(claim):
        calls.append(claim.name)
        begins.set()
        await goes_on.wait()
        return prepare(claim)

    async def story(world):
        first, second = await world.claim("a", "gpu-0"), await world.claim("b", "gpu-1")
        async with world.driver(slow) as kubelet:
            begun = asyncio.create_task(kubelet.prepare(first))
            await begins.wait()
            with pytest.raises(Exception, match="DEADLINE_EXCEEDED"):
                await dra.prepare(kubelet.channel, dra.V1, [second], timeout_s=0.3)
            assert (await asyncio.gather(begun, _after(goes_on)))[0][first.uid].error == ""
            assert (await kubelet.prepare(first))[first.uid].error == ""
        assert calls == ["a"]

    tell(story)


async def _after(event):
    await asyncio.sleep(0.2)
    event.set()


def test_both_versions_are_served_and_registered():
    async def story(world):
        claim = await world.claim("a", "gpu-0")
        async with world.driver() as kubelet:
            channel = UnixSockets().dial(str(world.places.registration_socket))
            info = await channel.call(registration.GET_INFO, registration.InfoRequest(), timeout_s=20)
            assert info == registration.PluginInfo(
                "DRAPlugin", NAME, str(world.places.service_socket), ("v1.DRAPlugin", "v1beta1.DRAPlugin")
            )
            told = registration.RegistrationStatus(plugin_registered=True)
            await channel.call(registration.NOTIFY, told, timeout_s=20)
            assert kubelet.work.registration.registered.is_set()
            told = registration.RegistrationStatus(error="no version in common")
            await channel.call(registration.NOTIFY, told, timeout_s=20)
            assert not kubelet.work.registration.registered.is_set()
            await channel.close()
            kubelet.version = dra.V1BETA1
            assert (await kubelet.prepare(claim))[claim.uid].error == ""
        assert not world.places.registration_socket.exists()

    tell(story)


def test_two_instances_share_what_they_know():
    """STATE4, a rolling update: what one prepared the other unprepares."""
    calls = []

    def once(claim):
        calls.append(claim.name)
        return prepare(claim)

    async def story(world):
        claim, other = await world.claim("a", "gpu-0"), await world.claim("b", "gpu-1")
        second = Places(NAME, world.places.root, world.places.cdi, instance="new")
        async with world.driver(once) as old:
            first = await old.prepare(claim)
            async with world.driver(once, places=second) as new:
                assert await new.prepare(claim) == first
                await asyncio.gather(old.prepare(other), new.prepare(other), old.prepare(claim))
                assert sorted(calls) == ["a", "b"]
                assert (await new.unprepare(claim, other))[claim.uid].error == ""
                assert world.files() == set()
                await old.prepare(claim)
                assert sorted(calls) == ["a", "a", "b"]

    tell(story)


class GpuConfig(Config):
    sharing: str = "exclusive"
    replicas: int = 1


class LinkConfig(Config):
    lanes: int


def opaque(parameters, requests=(), source="FromClaim", driver=NAME):
    return {"source": source, "requests": [*requests], "opaque": {"driver": driver, "parameters": parameters}}


def test_configs_are_decoded_into_the_author_s_own_classes():
    seen = []

    def note(claim):
        seen.extend(claim.devices[0].configs)

    config = [
        opaque({"kind": "GpuConfig", "apiVersion": "v1", "sharing": "timeSliced"}, source="FromClass"),
        opaque({"whatever": 1}, driver="other.example.com"),
        opaque({"kind": "GpuConfig", "replicas": 3}, requests=["r"]),
        opaque({"kind": "GpuConfig", "replicas": 9}, requests=["q"]),
    ]

    async def story(world):
        claim = await world.claim("a", "gpu-0", config=config)
        async with world.driver(note, configs=(GpuConfig, LinkConfig)) as kubelet:
            assert (await kubelet.prepare(claim))[claim.uid].error == ""
        assert seen == [
            GpuConfig(api_version="v1", kind="GpuConfig", sharing="timeSliced"),
            GpuConfig(kind="GpuConfig", replicas=3),
        ]

    tell(story)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"kind": "GpuConfig", "replicas": "3"}, "replicas: Expected `int`, got `str`"),
        ({"kind": "GpuConfig", "replica": 3}, "unknown field `replica`"),
        ({"kind": "LinkConfig"}, "missing required field `lanes`"),
        ({"kind": "Other"}, "kind: 'Other' is not one of GpuConfig, LinkConfig"),
        ({}, "kind: None is not one of GpuConfig, LinkConfig"),
    ],
)
def test_a_wrong_config_is_refused_with_its_place(parameters, words):
    async def story(world):
        claim = await world.claim("a", "gpu-0", config=[opaque(parameters)])
        async with world.driver(configs=(GpuConfig, LinkConfig)) as kubelet:
            said = (await kubelet.prepare(claim))[claim.uid].error
            assert said.startswith(
                "claim default/a: config[0].opaque.parameters for request 'r', from the claim: "
            )
            assert words in said
        async with world.driver() as kubelet:
            assert "this driver takes no configuration" in (await kubelet.prepare(claim))[claim.uid].error

    tell(story)


def test_the_answer_names_requests_and_the_author_sees_alternatives():
    """Containers refer to `r`; which of its alternatives was chosen is the driver's to know."""
    seen = []

    def note(claim):
        seen.extend(one.request for one in claim.devices)

    async def story(world):
        claim = await world.claim("a", "gpu-0", request="s/small")
        async with world.driver(note) as kubelet:
            (device,) = (await kubelet.prepare(claim))[claim.uid].devices
            assert device.request_names == ("s",)
        assert seen == ["s/small"]

    tell(story)


def test_shares_of_one_device_are_told_apart():
    """Each has its own CDI device, and its id in the answer; v1beta1 has no such ids."""
    shares = ["d0c8a3ee-0000-4000-8000-000000000001", "d0c8a3ee-0000-4000-8000-000000000002"]

    def prepare(claim):
        return {one: Edits(env=(f"SHARE_{at}={one.share_id}",)) for at, one in enumerate(claim.devices)}

    def pools(node):
        return [Pool(node.name, [Device("gpu-0", capacity={"memory": "8Gi"}, shared=True)])]

    async def story(world):
        async with world.driver(prepare, pools=pools) as kubelet:
            await until(world.devices)
            claim = await world.claim("a", *["gpu-0"] * 2, shares=shares)
            answer = (await kubelet.prepare(claim))[claim.uid]
            assert [one.share_id for one in answer.devices] == shares
            assert len({one.cdi_device_ids for one in answer.devices}) == 2
            assert world.env(answer) == tuple(f"SHARE_{at}={share}" for at, share in enumerate(shares))
            kubelet.version = dra.V1BETA1
            assert [one.share_id for one in (await kubelet.prepare(claim))[claim.uid].devices] == [None, None]

    tell(story)


def test_a_device_may_need_nothing_or_be_known_to_the_runtime_already():
    def mixed(claim):
        return {claim.devices[1]: Ready(cdi_devices=("vendor.com/gpu=1",))}

    async def story(world):
        claim = await world.claim("a", "gpu-0", "gpu-1")
        async with world.driver(mixed) as kubelet:
            answer = (await kubelet.prepare(claim))[claim.uid]
            assert [one.cdi_device_ids for one in answer.devices] == [(), ("vendor.com/gpu=1",)]
            assert world.files() == set()

    tell(story)


def test_edits_that_no_runtime_would_take_are_an_error_that_says_so():
    async def story(world):
        claim = await world.claim("a", "gpu-0")
        async with world.driver(lambda claim: {claim.devices[0]: Edits(env=("NONAME",))}) as kubelet:
            said = (await kubelet.prepare(claim))[claim.uid].error
            assert "env[0]: 'NONAME' is not of the form NAME=VALUE" in said

    tell(story)


def test_device_status_is_written_into_the_claim():
    """With server-side apply, as the driver: nobody else's entries are touched."""
    status = DeviceStatus(
        conditions=(
            {
                "type": "Ready",
                "status": "True",
                "reason": "Up",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            },
        ),
        data={"firmware": "1.2"},
        interface_name="eth1",
        ips=("10.9.8.7/24",),
    )

    def prepare(claim):
        return {claim.devices[0]: Ready(Edits(env=("A=b",)), status=status)}

    async def story(world):
        claim = await world.claim("a", "gpu-0", "gpu-1")
        claims = world.client.resource("resource.k8s.io", "v1", "resourceclaims")

        async def shown():
            return (await claims.get("a", "default")).fields["status"].get("devices")

        async with world.driver(prepare) as kubelet:
            await kubelet.prepare(claim)
            (entry,) = await until(shown)
        assert (entry["driver"], entry["pool"], entry["device"]) == (NAME, NODE, "gpu-0")
        assert entry["data"] == {"firmware": "1.2"}
        assert entry["networkData"] == {"interfaceName": "eth1", "ips": ["10.9.8.7/24"]}
        managers = (await claims.get("a", "default")).fields["metadata"]["managedFields"]
        assert [one["operation"] for one in managers if one["manager"] == NAME] == ["Apply"]

    tell(story)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is not the JSON of a checkpoint"),
        (b'{"format": "x", "checksum": 1, "data": ""}', "its format is 'x'"),
        (None, "its checksum is"),
    ],
)
def test_a_state_that_cannot_be_read_keeps_the_driver_from_starting(content, words):
    """STATE3."""

    async def story(world):
        claim = await world.claim("a", "gpu-0")
        async with world.driver() as kubelet:
            await kubelet.prepare(claim)
        path = world.places.data / "checkpoint.json"
        if content is None:
            file = msgspec.json.decode(path.read_bytes())
            path.write_bytes(msgspec.json.encode({**file, "checksum": 1}))
        else:
            path.write_bytes(content)
        with pytest.raises(BadState, match=f"{path}: {words}.*drain the node"):
            async with world.driver():
                pass

    tell(story)
