"""Numbers in the form that Prometheus reads."""

from allot.base import Metrics


def test_every_kind_of_metric_in_text():
    metrics = Metrics()
    requests = metrics.counter("requests_total", "Requests.", "verb", "code")
    requests.add(1, "get", "200")
    requests.add(2, "get", "200")
    requests.add(1, 'odd "verb"\n', "500")
    metrics.gauge("depth", "Depth.").set(3.5)
    seconds = metrics.histogram("seconds", "Time.", bounds=(0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 7):
        seconds.observe(value)
    metrics.reading("age_seconds", "Age.", lambda: 4.0)
    metrics.reading("cut_total", "Cut.", lambda: 2)
    assert metrics.text().splitlines() == [
        "# HELP requests_total Requests.",
        "# TYPE requests_total counter",
        'requests_total{verb="get",code="200"} 3',
        'requests_total{verb="odd \\"verb\\"\\n",code="500"} 1',
        "# HELP depth Depth.",
        "# TYPE depth gauge",
        "depth 3.5",
        "# HELP seconds Time.",
        "# TYPE seconds histogram",
        'seconds_bucket{le="0.1"} 2',
        'seconds_bucket{le="1"} 3',
        'seconds_bucket{le="+Inf"} 4',
        "seconds_sum 7.65",
        "seconds_count 4",
        "# HELP age_seconds Age.",
        "# TYPE age_seconds gauge",
        "age_seconds 4",
        "# HELP cut_total Cut.",
        "# TYPE cut_total counter",
        "cut_total 2",
    ]
