"""Large requests: in a thread, in turn, within bounds."""

import asyncio
import json
import threading
import time

import pytest

from allot.api import Request, User, errors, transaction
from allot.apiserver import ApiServer, identities
from allot.apiserver.requests import aside
from allot.apiserver.requests.aside import Aside, Lane, weight_of
from allot.apiserver.transactions import carrying
from allot.apiserver.writing import body
from allot.base import Metrics
from allot.store import MemoryStore

from ..serving.ground import until

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def a_lane(seats=2, per_user=1):
    return Lane("test", seats, per_user, Metrics().counter("rejected", "", "reason"))


def test_seats_go_round_the_users():
    """ASIDE2: ten of one user, then one of each of two others: those wait for one, not for ten."""

    async def story():
        lane, order = a_lane(seats=1), []

        async def request(user, number):
            await lane.enter(user)
            order.append(f"{user}{number}")
            await asyncio.sleep(0)
            lane.leave(user)

        waiting = [asyncio.create_task(request("a", number)) for number in range(10)]
        await asyncio.sleep(0)
        waiting += [asyncio.create_task(request(user, 0)) for user in ("b", "c")]
        await asyncio.gather(*waiting)
        assert order[0] == "a0" and {"b0", "c0"} <= set(order[1:5])
        assert sorted(order) == sorted([*(f"a{number}" for number in range(10)), "b0", "c0"])
        assert lane.seated == lane.waiting == 0

    asyncio.run(story())


def test_one_user_does_not_take_all_seats():
    async def story():
        lane = a_lane(seats=2, per_user=1)
        await lane.enter("a")
        second = asyncio.create_task(lane.enter("a"))
        await asyncio.sleep(0)
        assert not second.done() and lane.seated == 1
        await asyncio.wait_for(lane.enter("b"), 5)
        lane.leave("b")
        await asyncio.sleep(0)
        assert not second.done()
        lane.leave("a")
        await second
        lane.leave("a")
        assert lane.seated == lane.waiting == 0

    asyncio.run(story())


def test_whoever_gives_up_leaves_no_seat_behind():
    """While it waits, and in the very moment in which it is its turn."""

    async def story():
        lane = a_lane(seats=1)
        await lane.enter("a")
        gives_up, stays = (asyncio.create_task(lane.enter(user)) for user in ("b", "c"))
        await asyncio.sleep(0)
        gives_up.cancel()
        await asyncio.sleep(0)
        lane.leave("a")
        await asyncio.wait_for(stays, 5)
        late = asyncio.create_task(lane.enter("d"))
        await asyncio.sleep(0)
        lane.leave("c")
        late.cancel()  # it has been given the seat, and does not know yet
        await asyncio.gather(late, return_exceptions=True)
        await asyncio.wait_for(lane.enter("e"), 5)
        lane.leave("e")
        assert lane.seated == lane.waiting == 0

    asyncio.run(story())


def test_those_who_wait_are_bounded(monkeypatch):
    monkeypatch.setattr(aside, "WAITING_MAX", 3)
    monkeypatch.setattr(aside, "WAITING_PER_USER_MAX", 2)

    async def story():
        lane = a_lane(seats=1)
        await lane.enter("a")
        waiting = [asyncio.create_task(lane.enter("a")) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(errors.TooManyRequests):
            await lane.enter("a")
        waiting.append(asyncio.create_task(lane.enter("b")))
        await asyncio.sleep(0)
        with pytest.raises(errors.TooManyRequests) as refused:
            await lane.enter("c")
        assert refused.value.retry_after_s == 1
        for task in waiting:
            task.cancel()

    asyncio.run(story())


def test_what_a_thread_asks_is_answered_by_the_loop():
    async def story():
        lanes = Aside(Metrics())
        seat = lanes.seat("a")
        assert await seat.settle(aside.SMALL_BYTES) is False
        assert await seat.settle(aside.SMALL_BYTES + 1) is True
        ask = seat.on_loop(threading.current_thread)
        home = threading.current_thread()
        assert await seat.do(threading.current_thread) is not home
        assert await seat.do(ask) is home and ask() is home
        failing = seat.on_loop(lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await seat.do(failing)
        seat.leave()
        lanes.close()

    asyncio.run(story())


def test_a_user_judges_one_thing_at_a_time_and_keeps_the_seat_when_he_has_gone():
    """ASIDE5: whoever sends, goes away and sends again would else fill every thread."""

    async def story():
        lanes, under_way, may_end = Aside(Metrics()), threading.Event(), threading.Event()

        def judge():
            under_way.set()
            assert may_end.wait(60)

        gone = asyncio.create_task(lanes.judged("a", judge))
        await asyncio.to_thread(under_way.wait, 60)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        again = asyncio.create_task(lanes.judged("a", lambda: "a"))
        assert await asyncio.wait_for(lanes.judged("b", lambda: "b"), 60) == "b"
        assert not again.done()
        may_end.set()
        assert await asyncio.wait_for(again, 60) == "a"
        with pytest.raises(ZeroDivisionError):
            await lanes.judged("a", lambda: 1 / 0)
        lanes.close()

    asyncio.run(story())


@pytest.mark.parametrize(
    "body, media, is_small",
    [
        (b"{" + b" " * 10_000, "application/json", True),
        (b"{" + b" " * 20_000, "application/json", False),
        (b"a: " + b"b" * 1_000, "application/yaml", True),
        (b"a: " + b"b" * 3_000, "application/yaml", False),
        (b" {" + b" " * 10_000, "application/apply-patch+yaml", True),
        (b"a:" + b" " * 10_000, "application/apply-patch+yaml", False),
        (b"k8s\0" + b"x" * 3_000, "application/vnd.kubernetes.protobuf", False),
    ],
)
def test_what_counts_as_small(body, media, is_small):
    weight = weight_of(Request("POST", "/", {}, {"content-type": media}, body))
    assert (weight <= aside.SMALL_BYTES) == is_small


def large_pod(name, megabytes=1.0):
    """Within the limit of a stored object, and much to look at."""
    env = [{"name": f"V{i}", "value": "x"} for i in range(int(megabytes * 26_000))]
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "a", "image": "b", "env": env}]}}


@pytest.fixture
def read_by(monkeypatch):
    """The threads that read a large body."""
    threads = []
    plain = body.decode_body

    def decode_body(request, **options):
        if len(request.body) > aside.SMALL_BYTES:
            threads.append(threading.current_thread())
        return plain(request, **options)

    monkeypatch.setattr(body, "decode_body", decode_body)
    return threads


def test_large_bodies_are_read_aside(api, read_by):
    padding = {"annotations": {"a": "x" * 40_000}}
    assert api("POST", MAPS, {"metadata": {"name": "a", **padding}}).status == 201
    assert api("PUT", f"{MAPS}/a", {"metadata": {"name": "a", **padding}}).status == 200
    review = {"spec": {"resourceAttributes": {"verb": "get", "name": "x" * 40_000}}}
    assert api("POST", REVIEW, review).status == 201
    assert len(read_by) == 3 and threading.main_thread() not in read_by


def test_a_large_transaction_is_taken_apart_aside_and_a_small_one_where_it_is(api, monkeypatch):
    threads, plain = [], carrying.wanted_of
    monkeypatch.setattr(
        carrying, "wanted_of", lambda *a: threads.append(threading.current_thread()) or plain(*a)
    )
    for name, size in (("small", 10), ("large", 300_000)):
        made = {"metadata": {"name": name}, "data": {"a": "x" * size}}
        members = [{"method": "POST", "path": MAPS, "body": made}]
        assert api("POST", transaction.PATH, {"spec": {"requests": members}}).status == 201
    assert [one is threading.main_thread() for one in threads] == [True, False]


def test_a_small_patch_of_a_large_object_is_worked_on_aside(api, monkeypatch):
    from allot.apiserver.writing import patching

    made = {"metadata": {"name": "a"}, "data": {"a": "x" * 500_000}}
    assert api("POST", MAPS, made).status == 201
    threads, plain = [], patching.settled
    monkeypatch.setattr(
        patching, "settled", lambda *a, **b: threads.append(threading.current_thread()) or plain(*a, **b)
    )
    media = "application/merge-patch+json"
    assert api("PATCH", f"{MAPS}/a", {"metadata": {"labels": {"a": "b"}}}, media=media).status == 200
    assert threads and threading.main_thread() not in threads
    found = api("GET", f"{MAPS}/a").body
    assert found["metadata"]["labels"] == {"a": "b"} and len(found["data"]["a"]) == 500_000


def test_a_conditional_update_that_had_to_wait_sees_what_is_stored_then(api):
    """What was read before the wait is not held against whoever waited."""

    async def story():
        padding = {"annotations": {"a": "x" * 40_000}}
        made = await api.ask("POST", MAPS, {"metadata": {"name": "a", **padding}})
        lane = api.server.aside._large
        for user in ("x", "y"):
            for _ in range(4):
                await lane.enter(user)
        labelled = {"metadata": {"name": "a", "labels": {"n": "1"}, **padding}}
        waiting = asyncio.create_task(api.ask("PUT", f"{MAPS}/a", labelled))
        await until(lambda: lane.waiting)
        media = "application/merge-patch+json"
        for user in ("x", "y"):
            for _ in range(4):
                lane.leave(user)
        assert (await waiting).status == 200
        newest = (await api.ask("GET", f"{MAPS}/a")).body["metadata"]["resourceVersion"]
        assert newest != made.body["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": newest, "labels": {"n": "2"}}}
        assert (await api.ask("PATCH", f"{MAPS}/a", patch, media=media)).status == 200

    api.run(story())


def test_others_are_answered_while_ten_large_bodies_of_one_user_wait():
    """And another user's large one does not wait for all of them."""

    async def story():
        api = ApiServer(MemoryStore())
        await api.start()
        hostile = User("system:hostile", ("system:masters",))

        async def post(name, user, megabytes):
            request = Request("POST", PODS, {}, {}, json.dumps(large_pod(name, megabytes)).encode())
            answer = await api.handle(request, user)
            finished.append(name)
            return answer.status

        finished = []
        attack = [asyncio.create_task(post(f"h{i}", hostile, 0.6)) for i in range(10)]
        await asyncio.sleep(0)
        other = asyncio.create_task(post("o", identities.ADMIN, 0.3))
        probed, worst_s = 0, 0.0
        while not all(task.done() for task in [*attack, other]):
            started = time.perf_counter()
            small = {"metadata": {"name": f"probe-{probed}"}}
            request = Request("POST", MAPS, {}, {}, json.dumps(small).encode())
            assert (await api.handle(request, identities.ADMIN)).status == 201
            worst_s = max(worst_s, time.perf_counter() - started)
            probed += 1
            await asyncio.sleep(0.005)
        assert {await task for task in [*attack, other]} == {201}
        assert finished.index("o") <= 3, finished
        assert probed >= 10
        assert worst_s < 2.0, "a probe was held up by what is large"
        assert (
            "allot_large_requests_seated"
            in (await api.handle(Request("GET", "/metrics"), identities.ADMIN)).body.decode()
        )
        await api.close()

    asyncio.run(story())
