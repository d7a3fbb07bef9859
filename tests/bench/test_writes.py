"""Counting what a server did, from what it shows on /metrics."""

from allot.bench.writes import read


def line(verb: str, subresource: str, code: int, count: int) -> str:
    labels = f'group="",version="v1",resource="pods",subresource="{subresource}",code="{code}"'
    return f'apiserver_request_total{{verb="{verb}",{labels}}} {count}'


TEXT = "\n".join(
    [
        "# TYPE apiserver_request_total counter",
        line("create", "", 201, 7),
        line("create", "binding", 201, 5),
        line("create", "binding", 409, 1),
        line("list", "", 200, 3),
        "allot_event_loop_longest_hold_seconds 0.004",
    ]
)


def test_writes_are_told_apart_by_verb_resource_and_outcome():
    served = read(TEXT)
    assert served.done == {"create pods": 7, "create pods/binding": 5}
    assert served.refused == {"create pods/binding 409": 1}
    assert served.reads == 3
    assert served.longest_hold_s == 0.004


def test_only_what_came_since_counts():
    later = read(TEXT.replace('code="201"} 7', 'code="201"} 9'))
    assert later.since(read(TEXT)).done == {"create pods": 2}
    assert later.since(read(TEXT)).reads == 0
