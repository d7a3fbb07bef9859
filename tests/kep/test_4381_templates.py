"""KEP-4381: the templates of a class are judged when it is written."""

import pytest

from api.numeric.objects import TEMPLATE, class_, entry
from api.resource.test_served import Api

CLASSES = "/v1alpha1/resourceclasses"


@pytest.fixture
def api(allot_server):
    return Api(allot_server)


def with_template(*texts):
    return class_("frob", *(entry(kind=f"Kind{at}", celTemplate=text) for at, text in enumerate(texts)))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Required: {{object.spec.}}", "placeholder {{object.spec.}} in line 3: compilation failed"),
        ("Required: {{object.spec.n", "placeholder in line 3 has no end"),
        ("Required: {{self.n}}", "undeclared reference to 'self'"),
        ("{{object.spec.n}}: 1", "may be a value only, not a key"),
        ("Required: {{object.a.all(x, object.a.all(y, x == y))}}", "exceeds cost limit"),
        ("Required: [", "is not valid YAML"),
    ],
)
def test_a_bad_template_is_refused_with_its_path_and_its_placeholder(api, line, said):
    """4381-TPL-15, 4381-TPL-17, 4381-TPL-23, 4381-ERR-15"""
    head = "kind: Parameters\napiVersion: a/v1\n"
    answer = api("POST", CLASSES, with_template(TEMPLATE, head + line))
    assert answer.code == 422
    (cause,) = answer.body["details"]["causes"]
    assert cause["field"] == "numericParameters[1].celTemplate"
    assert said in cause["message"]


def test_a_type_that_the_server_does_not_know_is_accepted(api):
    """4381-TPL-16: models live in schedulers."""
    api.made(CLASSES, with_template("kind: Nothing\napiVersion: nobody.example.com/v7\nx: {{object.spec.y}}"))


def test_many_long_templates_are_judged_too(api):
    """They take longer than a moment to compile, so they are judged aside."""
    line = "".join(f"x{at}: {{{{object.spec.x{at} + {at}}}}}\n" for at in range(200))
    good = f"kind: P\napiVersion: a/v1\n{line}"
    answer = api("POST", CLASSES, with_template(good, good + "y: {{object.}}"))
    assert answer.code == 422
    assert [one["field"] for one in answer.body["details"]["causes"]] == ["numericParameters[1].celTemplate"]
    api.made(CLASSES, with_template(good, good + "y: {{object.y}}"))
