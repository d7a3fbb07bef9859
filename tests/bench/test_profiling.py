"""A sample counts for whose code was running, and for whoever had asked for it."""

import time

from allot.bench.profiling import Profile, Profiler, Sample, sampled

LOOP = ("/usr/lib/python3.11/asyncio/base_events.py", 1, "run_forever")
BINDING = ("/x/src/allot/scheduler/binding.py", 7, "bind")
CLIENT = ("/x/src/allot/client/client.py", 3, "send")
WRITING = ("/x/src/allot/apiserver/writing/writer.py", 9, "change")
CONTROLLER = ("/x/src/allot/controllers/resourceclaims/pod_loop.py", 1, "reconcile")
QUEUE = ("/x/src/allot/informers/reconciler.py", 1, "run")
JSON = ("/x/lib/site-packages/msgspec/__init__.py", 1, "decode")


def test_a_library_counts_for_the_package_that_called_it_and_a_write_for_who_asked():
    found = sampled(iter([JSON, WRITING, CLIENT, BINDING, LOOP]))
    assert found == Sample(
        "scheduler", "apiserver", "apiserver/writing/writer.py", "apiserver/writing/writer.py:9 change"
    )


def test_a_server_that_nobody_asked_tells_its_watchers():
    assert sampled(iter([WRITING, LOOP])).actor == "server, for watchers"


def test_who_is_called_by_the_machinery_acts_and_not_the_machinery():
    assert sampled(iter([WRITING, CLIENT, CONTROLLER, QUEUE, LOOP])).actor == "controllers"
    assert sampled(iter([QUEUE, LOOP])).actor == "caches"
    assert sampled(iter([BINDING, ("/x/src/allot/bench/real.py", 1, "run"), LOOP])).actor == "scheduler"


def test_a_stack_without_ours_is_waiting():
    assert sampled(iter([LOOP])).package == "event loop, other threads"
    assert sampled(iter([LOOP, ("/x/src/allot/cli/bench.py", 1, "run")])).actor == "event loop, other threads"


def test_seconds_add_up_whatever_they_are_summed_by():
    samples = {sampled(iter([WRITING, LOOP])): 3, sampled(iter([WRITING, CLIENT, BINDING])): 2}
    profile = Profile(samples, 0.002, 0.0)
    assert profile.seconds_by("actor") == {"server, for watchers": 0.006, "scheduler": 0.004}
    assert profile.seconds_by("package") == {"apiserver": 0.01}
    assert any(line.split() == ["5000", "apiserver"] for line in profile.lines(2))


def test_samples_follow_processor_time():
    """A twentieth of a second of work is seen about 25 times, a pause not at all."""
    profiler = Profiler(sampling=True)
    profiler.start()
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    time.sleep(0.1)
    profile = profiler.stop()
    assert profile is not None
    assert 0.01 < sum(profile.seconds_by("actor").values()) < 0.1
