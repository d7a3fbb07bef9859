"""Which logins of a pod's secrets are good for an image."""

import json
from base64 import b64encode

import pytest

from allot.nodeagent.logins import BadSecret, entries, logins_for
from allot.nodeagent.runtimes import Login


def secret(**auths):
    return {".dockerconfigjson": json.dumps({"auths": auths}).encode()}


def names(image, *registries):
    known = secret(**{one: {"username": one, "password": "x"} for one in registries})
    return [login.name for login in logins_for(image, entries(known))]


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        ("reg.example/a/b:1", "reg.example"),
        ("reg.example/a/b:1", "https://reg.example/v2/"),
        ("reg.example/a/b:1", "reg.example/a"),
        ("reg.example:5000/a", "reg.example:5000"),
        ("eu.reg.example/a", "*.reg.example"),
        ("reg.example/a@sha256:" + "0" * 64, "reg.example"),
        ("busybox", "https://index.docker.io/v1/"),
        ("library/busybox", "docker.io"),
        ("docker.io/library/busybox", "index.docker.io"),
        ("localhost/a", "localhost"),
    ],
)
def test_a_login_is_good_for_what_it_stands_under(image, registry):
    assert names(image, registry) == [registry]


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        ("reg.example/a", "other.example"),
        ("reg.example/a", "reg.example/b"),
        ("reg.example/a", "reg.example:5000"),
        ("reg.example:5000/a", "reg.example"),
        ("a.b.reg.example/a", "*.reg.example"),
        ("evilreg.example/a", "reg.example"),
        ("busybox", "reg.example"),
        ("docker.io.evil.example/a", "docker.io"),
    ],
)
def test_and_for_nothing_else(image, registry):
    assert names(image, registry) == []


def test_whoever_says_more_comes_first_and_nobody_twice():
    assert names("r.example/a/b", "r.example", "r.example/a/b", "*.example", "r.example/a") == [
        "r.example/a/b",
        "r.example/a",
        "r.example",
        "*.example",
    ]
    both = [
        *entries(secret(**{"r.example": {"auth": "YTpi"}})),
        *entries({".dockercfg": b'{"r.example": {"auth": "YTpi"}}'}),
    ]
    assert logins_for("r.example/x", both) == (Login("a", "b"),)


def test_a_login_may_be_one_word_and_does_not_show_its_password():
    word = b64encode(b"me:with:colons").decode()
    (login,) = logins_for("r.example/x", entries(secret(**{"r.example": {"auth": word}})))
    assert login == Login("me", "with:colons")
    assert "colons" not in repr(login)
    assert entries(secret(**{"r.example": {}})) == [], "nobody"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({}, "neither"),
        ({".dockerconfigjson": b"junk"}, "no JSON"),
        ({".dockerconfigjson": b"[]"}, "no JSON object"),
        ({".dockerconfigjson": b"{}"}, "no auths"),
        ({".dockercfg": b'{"r": 1}'}, "no JSON object"),
        (secret(r={"auth": "!!"}), "base64"),
        (secret(r={"auth": "//8="}), "base64"),
        (secret(**{"r:x/": {"auth": "YTpi"}}), "no registry"),
        (secret(**{"[::/": {"auth": "YTpi"}}), "no registry"),
    ],
)
def test_junk_is_said_to_be_junk(data, says):
    with pytest.raises(BadSecret, match=says):
        entries(data)
