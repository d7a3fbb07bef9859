"""What the containers of a pod need together."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import core, meta, podresources


def container(name="main", keeps_running=False, **requests):
    named = {"example.com/gpu" if key == "gpu" else key: text for key, text in requests.items()}
    policy = {"restartPolicy": "Always"} if keeps_running else {}
    return {"name": name, "resources": {"requests": named}, **policy}


def spec(*containers, init=(), **more):
    return {"containers": list(containers), "initContainers": list(init), **more}


def requests(fields):
    return podresources.requests(meta.view(core.PodSpec, fields))


def integers(fields):
    """Thousandths of a cpu, whole units of everything else."""
    found = requests(fields)
    return {name: one.milli() if name == "cpu" else one.as_int() for name, one in found.items()}


def test_containers_add_up():
    found = integers(spec(container(cpu="1500m", memory="1Ki", gpu="2"), container("b", cpu="0.25")))
    assert found == {"cpu": 1750, "memory": 1024, "example.com/gpu": 2}


@pytest.mark.parametrize(
    ("init", "needed"),
    [
        ([container("setup", gpu="3")], 3),
        ([container("setup", gpu="1")], 2),
        ([container("proxy", True, gpu="1")], 3),
        ([container("proxy", True, gpu="1"), container("setup", gpu="3")], 4),
        ([container("setup", gpu="3"), container("proxy", True, gpu="1")], 3),
        ([container("a", True, gpu="2"), container("b", True, gpu="3")], 7),
    ],
    ids=["larger", "smaller", "sidecar", "after a sidecar", "before a sidecar", "two sidecars"],
)
def test_init_containers_count_where_they_need_more_and_sidecars_stay(init, needed):
    assert integers(spec(container(gpu="2"), init=init)) == {"example.com/gpu": needed}


def test_what_the_pod_says_replaces_the_sum_of_cpu_and_memory_only():
    whole = {"requests": {"cpu": "4", "example.com/gpu": "9"}}
    found = integers(spec(container(cpu="1", memory="1k", gpu="1"), resources=whole))
    assert found == {"cpu": 4000, "memory": 1000, "example.com/gpu": 1}


def test_overhead_comes_on_top_of_everything():
    found = integers(spec(container(cpu="1"), resources={"requests": {"cpu": "2"}}, overhead={"cpu": "250m"}))
    assert found == {"cpu": 2250}


@pytest.mark.parametrize(
    ("name", "is_extended"),
    [
        ("example.com/gpu", True),
        ("deviceclass.resource.kubernetes.io/gpu.example.com", True),
        ("kubernetes.io/gpu", False),
        ("cpu", False),
        ("hugepages-2Mi", False),
        ("requests.example.com/gpu", False),
    ],
)
def test_extended_resources_have_foreign_names_or_that_of_a_class(name, is_extended):
    assert podresources.is_extended_resource(name) == is_extended


AMOUNTS = st.fixed_dictionaries(
    {}, optional={"cpu": st.integers(0, 4000).map("{}m".format), "gpu": st.integers(0, 4).map(str)}
)
CONTAINERS = st.lists(st.builds(lambda amounts: container(**amounts), AMOUNTS), min_size=1, max_size=3)
INIT = st.lists(
    st.builds(lambda keeps, amounts: container("i", keeps, **amounts), st.booleans(), AMOUNTS), max_size=4
)


@given(CONTAINERS, INIT, AMOUNTS)
def test_a_pod_needs_the_same_read_as_fields_and_as_a_view(containers, init, overhead):
    fields = spec(*containers, init=init, overhead={k: v for k, v in overhead.items() if k == "cpu"})
    assert requests(fields) == podresources.pod_needs(fields, "requests")


@given(CONTAINERS, INIT)
def test_a_pod_needs_the_most_that_runs_at_any_time(containers, init):
    """Told as a story: each init container beside the sidecars so far, then everything that stays."""

    def gpus(one):
        return int(one["resources"]["requests"].get("example.com/gpu", "0"))

    stays = [gpus(one) if "restartPolicy" in one else 0 for one in init]
    before = [0, *accumulate(stays)]
    moments = [before[at] + gpus(one) for at, one in enumerate(init)]
    moments.append(sum(stays) + sum(map(gpus, containers)))
    assert integers(spec(*containers, init=init)).get("example.com/gpu", 0) == max(moments)
