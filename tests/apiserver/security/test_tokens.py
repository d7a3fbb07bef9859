"""Service account tokens: what verifies, until when, and what never does."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import errors
from allot.apiserver.security import Authority, TokenRefused, Tokens, make_token, token_review
from allot.apiserver.security.jwt import BadToken, Keys
from allot.base import RandomIds

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
AUTHORITY = Authority.create(NOW)
KEYS = Keys(AUTHORITY.token_keys)
BOT = "system:serviceaccount:dev:bot"


class World(dict):
    """Stored objects by (resource, namespace, name)."""

    def __call__(self, resource, namespace, name):
        return self.get((resource, namespace, name))

    def put(self, resource, namespace, name, uid, **fields):
        self[resource, namespace, name] = {"metadata": {"name": name, "uid": uid}, **fields}


@pytest.fixture
def world():
    world = World()
    world.put("serviceaccounts", "dev", "bot", "sa-1")
    world.put("pods", "dev", "web", "pod-1", spec={"serviceAccountName": "bot", "nodeName": "n1"})
    world.put("pods", "dev", "other", "pod-2", spec={"serviceAccountName": "else"})
    world.put("nodes", "", "n1", "node-1")
    return world


def request(world, now=NOW, **spec):
    return make_token(Tokens(KEYS, world), world, RandomIds(), now, "dev", "bot", {"spec": spec})


def bound_to(kind, name, **more):
    return {"apiVersion": "v1", "kind": kind, "name": name, **more}


def token(world, now=NOW, **spec):
    return request(world, now, **spec)["status"]["token"]


def test_a_token_names_its_account_and_expires_in_an_hour(world):
    answer = request(world)
    tokens = Tokens(KEYS, world)
    user = tokens.user(answer["status"]["token"], NOW)
    assert user is not None
    assert (user.name, user.uid) == (BOT, "sa-1")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:dev", "system:authenticated")
    assert answer["status"]["expirationTimestamp"] == "2026-05-01T13:00:00Z"
    assert tokens.user(answer["status"]["token"], NOW + timedelta(minutes=59)) is not None
    assert tokens.user(answer["status"]["token"], NOW + timedelta(hours=1)) is None


def test_a_token_is_not_valid_before_its_time_but_clocks_may_differ_a_little(world):
    tokens = Tokens(KEYS, world)
    assert tokens.user(token(world, NOW + timedelta(seconds=5)), NOW) is not None
    assert tokens.user(token(world, NOW + timedelta(seconds=60)), NOW) is None


def test_a_token_dies_with_its_account_and_does_not_serve_its_successor(world):
    """TOKEN2, TOKEN3: seen good, then refused at once."""
    tokens, given_token = Tokens(KEYS, world), token(world)
    assert tokens.user(given_token, NOW) is not None
    world.put("serviceaccounts", "dev", "bot", "sa-2")
    assert tokens.user(given_token, NOW) is None
    del world["serviceaccounts", "dev", "bot"]
    assert tokens.user(given_token, NOW) is None


def test_a_pods_token_says_where_the_pod_runs_and_dies_with_it(world):
    tokens = Tokens(KEYS, world)
    given_token = token(world, boundObjectRef=bound_to("Pod", "web", uid="pod-1"))
    user = tokens.user(given_token, NOW)
    assert user is not None
    kind = "authentication.kubernetes.io/"
    assert user.extra[f"{kind}pod-name"] == ("web",)
    assert user.extra[f"{kind}pod-uid"] == ("pod-1",)
    assert user.extra[f"{kind}node-name"] == ("n1",)
    assert user.extra[f"{kind}node-uid"] == ("node-1",)
    assert user.extra[f"{kind}credential-id"][0].startswith("JTI=")
    world.put("pods", "dev", "web", "pod-9", spec={})
    assert tokens.user(given_token, NOW) is None


def test_a_pod_that_is_ending_may_still_use_its_token_for_a_minute(world):
    tokens = Tokens(KEYS, world)
    given_token = token(world, boundObjectRef=bound_to("Pod", "web"))
    world["pods", "dev", "web"]["metadata"]["deletionTimestamp"] = "2026-05-01T12:00:30Z"
    assert tokens.user(given_token, NOW + timedelta(seconds=80)) is not None
    assert tokens.user(given_token, NOW + timedelta(seconds=91)) is None


def test_a_nodes_token_dies_with_the_node(world):
    tokens = Tokens(KEYS, world)
    given_token = token(world, boundObjectRef=bound_to("Node", "n1"))
    assert tokens.user(given_token, NOW) is not None
    del world["nodes", "", "n1"]
    assert tokens.user(given_token, NOW) is None


def test_a_secrets_token_dies_with_the_secret_and_does_not_serve_its_successor(world):
    world.put("secrets", "dev", "key", "secret-1")
    tokens = Tokens(KEYS, world)
    given_token = token(world, boundObjectRef=bound_to("Secret", "key"))
    assert tokens.user(given_token, NOW) is not None
    world.put("secrets", "dev", "key", "secret-2")
    assert tokens.user(given_token, NOW) is None
    del world["secrets", "dev", "key"]
    assert tokens.user(given_token, NOW) is None


def test_a_pods_token_outlives_its_node_because_the_pod_decides(world):
    given_token = token(world, boundObjectRef=bound_to("Pod", "web"))
    del world["nodes", "", "n1"]
    assert Tokens(KEYS, world).user(given_token, NOW) is not None


def test_a_token_for_somebody_else_is_not_one_for_us(world):
    tokens, given_token = Tokens(KEYS, world), token(world, audiences=["vault"])
    assert tokens.user(given_token, NOW) is None
    assert tokens.verify(given_token, NOW, ["vault"]).user.name == BOT


@pytest.mark.parametrize(
    ("spec", "error", "text"),
    [
        ({"expirationSeconds": 599}, errors.Invalid, "may not specify a duration less than 10 minutes"),
        ({"expirationSeconds": 2**32 + 1}, errors.Invalid, "larger than 2^32 seconds"),
        ({"boundObjectRef": bound_to("Pod", "gone")}, errors.NotFound, 'pods "gone" not found'),
        ({"boundObjectRef": bound_to("Pod", "other")}, errors.BadRequest, "different serviceaccount name"),
        (
            {"boundObjectRef": bound_to("Lease", "x")},
            errors.BadRequest,
            "cannot bind token to object of type",
        ),
        ({"boundObjectRef": bound_to("Pod", "web", uid="old")}, errors.Conflict, "does not match the UID"),
    ],
)
def test_a_wish_that_cannot_be_granted_is_refused(world, spec, error, text):
    with pytest.raises(error, match=text.replace("^", r"\^")):
        request(world, **spec)


def test_a_wish_for_ever_is_granted_for_a_year(world):
    answer = request(world, expirationSeconds=2**32)
    assert answer["spec"]["expirationSeconds"] == 366 * 24 * 3600


def test_an_account_that_does_not_exist_gets_no_token(world):
    del world["serviceaccounts", "dev", "bot"]
    with pytest.raises(errors.NotFound, match='serviceaccounts "bot" not found'):
        request(world)


def test_after_a_key_is_replaced_old_tokens_still_verify_until_it_is_dropped(world):
    old_token = token(world)
    fresh = Authority.create(NOW).token_keys
    both = Tokens(Keys((*fresh, *AUTHORITY.token_keys)), world)
    assert both.user(old_token, NOW) is not None
    assert Tokens(Keys(fresh), world).user(old_token, NOW) is None


def test_another_clusters_token_is_refused(world):
    stranger = Tokens(Keys(Authority.create(NOW).token_keys), world)
    assert stranger.user(token(world), NOW) is None


def test_a_review_tells_whose_token_it_is(world):
    tokens = Tokens(KEYS, world)
    answer = token_review(tokens, NOW, {"kind": "TokenReview", "spec": {"token": token(world)}})
    assert answer["status"]["authenticated"] is True
    assert answer["status"]["user"]["username"] == BOT
    assert answer["status"]["audiences"] == [tokens.issuer]
    answer = token_review(tokens, NOW, {"spec": {"token": "nonsense"}})
    assert answer["status"] == {"authenticated": False, "error": "the token does not have three parts"}


def test_the_memory_of_verified_tokens_is_bounded(world, monkeypatch):
    monkeypatch.setattr("allot.apiserver.security.tokens._REMEMBERED_MAX", 3)
    tokens = Tokens(KEYS, world)
    for _ in range(5):
        assert tokens.user(token(world), NOW) is not None
    assert len(tokens._remembered) == 3


# JWT1: whatever is done to a token, it does not verify.

SIGNED = KEYS.sign({"sub": BOT, "n": 1})
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."


@given(st.integers(0, len(SIGNED) - 1), st.sampled_from(ALPHABET + "=+/ \n\x00é"))
@settings(max_examples=300)
def test_no_character_can_be_changed(place, letter):
    changed = SIGNED[:place] + letter + SIGNED[place + 1 :]
    if changed != SIGNED:
        with pytest.raises(BadToken):
            KEYS.verify(changed)


@given(st.integers(0, len(SIGNED)), st.text(ALPHABET + "=\n ", max_size=3), st.integers(0, 3))
@settings(max_examples=200)
def test_nothing_can_be_put_in_or_taken_out(place, added, removed):
    changed = SIGNED[:place] + added + SIGNED[place + removed :]
    if changed != SIGNED:
        with pytest.raises(BadToken):
            KEYS.verify(changed)


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: raw.decode("latin-1")))
def test_noise_is_refused_and_nothing_else_happens(noise):
    with pytest.raises(TokenRefused):
        Tokens(KEYS, World()).verify(noise, NOW)


@pytest.mark.parametrize("letter", [*ALPHABET, "=", "+", "/", " ", "\n", "\t", "!"])
def test_a_signature_has_one_spelling_in_base64(letter):
    """The last of 86 letters has four spare bits, and decoders like to skip what they do not know."""
    signature = SIGNED.rindex(".") + 1
    spellings = {SIGNED[:-1] + letter, SIGNED + letter, SIGNED[:signature] + letter + SIGNED[signature:]}
    for changed in spellings - {SIGNED}:
        with pytest.raises(BadToken):
            KEYS.verify(changed)


def test_the_other_spelling_of_a_signature_is_refused():
    """For a signature (r, s) the pair (r, n - s) verifies too; only one of them is ours."""
    from allot.apiserver.security import jwt

    head, _, signature = SIGNED.rpartition(".")
    raw = jwt._decode(signature)
    other = raw[:32] + (jwt._ORDER - int.from_bytes(raw[32:], "big")).to_bytes(32, "big")
    with pytest.raises(BadToken, match="another form"):
        KEYS.verify(f"{head}.{jwt._encode(other)}")


@pytest.mark.parametrize(
    "header", ['{"alg":"none"}', '{"alg":"HS256","kid":"%s"}', '{"alg":"ES256","kid":"%s","jwk":{}}']
)
def test_a_token_does_not_choose_how_it_is_verified(header):
    """Even one that our own key signed."""
    from allot.apiserver.security import jwt

    known = KEYS.public_jwks()["keys"][0]["kid"]
    odd = Keys(AUTHORITY.token_keys)
    odd._header = jwt._encode((header % known if "%" in header else header).encode())
    with pytest.raises(BadToken, match=r"another header|another algorithm"):
        KEYS.verify(odd.sign({"sub": BOT}))


def test_a_huge_token_is_refused_before_it_is_looked_at():
    with pytest.raises(BadToken, match="too long"):
        KEYS.verify("." * 10_000_000)


@pytest.mark.parametrize("claims", [{}, {"sub": BOT}, {"exp": "never"}])
def test_a_signed_token_that_is_not_of_an_account_is_refused(claims):
    with pytest.raises(TokenRefused, match="not one of a service account"):
        Tokens(KEYS, World()).verify(KEYS.sign(claims), NOW)


def test_a_token_that_names_one_account_and_holds_another_is_refused(world):
    import msgspec

    claims = msgspec.to_builtins(Tokens(KEYS, world).verify(token(world), NOW).claims)
    with pytest.raises(TokenRefused, match="contradicts itself"):
        Tokens(KEYS, world).verify(KEYS.sign({**claims, "sub": "system:serviceaccount:dev:other"}), NOW)
