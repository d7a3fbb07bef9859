"""Functions, one line each: an expression that must hold, or must fail when it runs.

Each runs twice, generated and node by node, because both are written by hand.
"""

import pytest

from allot.api import Quantity
from allot.cel import CelDevice, CompileError, EvaluationError, Features, compile_selector
from allot.cel.interpret import evaluate
from allot.cel.meter import Meter

LISTS = Features(list_attributes=True)
DEVICE = CelDevice.of(
    "d",
    {
        "n": {"int": 4},
        "s": {"string": "a,b"},
        "v": {"version": "1.2.3"},
        "l": {"strings": ["x", "y"]},
        "i": {"ints": [3, 1]},
    },
    {"mem": Quantity.parse("40Gi")},
)

TRUE = r"""
# operators
7 / 2 == 3 && -7 / 2 == -3 && -7 % 2 == -1 && 7 % -2 == 1
7u / 2u == 3u && 7u % 4u == 3u && 2u * 3u == 6u && 3u - 1u == 2u
1.0 / 0.0 > 1e300 && -1.0 / 0.0 < -1e300 && 0.0 / 0.0 != 0.0 / 0.0
1 < 1.5 && 2u > 1 && 1.0 <= 2u && 3 >= 3u
"a" < "b" && b"a" < b"b" && false < true && "a" + "b" == "ab" && b"a" + b"b" == b"ab"
[1] + [2] == [1, 2] && !([1] == [1, 2]) && [1] != [2]
{"a": 1} == {"a": 1} && {"a": 1} != {"a": 2} && {"a": 1}["a"] == 1 && {"a": 1}.a == 1
dyn(1) == dyn(1.0) && dyn(1u) == dyn(1) && dyn(1) != dyn("1") && dyn(true) != dyn(1) && dyn([1]) == dyn([1.0])
1 in [1, 2] && !(3 in [1, 2]) && "a" in {"a": 1} && true in {true: 1} && !(dyn(1) in {true: 1})
dyn({1: "a"})[dyn(1.0)] == "a" && dyn({1: "a"})[dyn(1u)] == "a"
[10, 20][1] == 20 && dyn([10, 20])[dyn(1.0)] == 20
null == null && dyn(null) != dyn(0)
# conversions
int("42") == 42 && int(4.9) == 4 && int(-4.9) == -4 && int(3u) == 3 && int(timestamp("1970-01-01T00:01:00Z")) == 60
uint("3") == 3u && uint(3.9) == 3u && double("1e3") == 1000.0 && double(3) == 3.0
string(1) == "1" && string(1u) == "1" && string(1.5) == "1.5" && string(2.0) == "2" && string(true) == "true"
string(1e6) == "1e+06" && string(1234567.5) == "1.2345675e+06" && string(123456.0) == "123456" && string(100.25) == "100.25"
string(0.0001) == "0.0001" && string(1.5e-7) == "1.5e-07" && string(0.0) == "0" && string(-1e300) == "-1e+300" && string(0.05) == "0.05"
string(b"abc") == "abc" && bytes("é").size() == 2 && bool("true") && !bool("False") && string(-0.5) == "-0.5"
type(1) == int && type(1u) == uint && type("") == string && type([]) == list && type({}) == map && type(int) == type
type(null) == null_type && type(quantity("1")) == kubernetes.Quantity
# times
timestamp("2020-02-29T23:59:59.5Z").getFullYear() == 2020 && timestamp("2020-02-29T00:00:00Z").getMonth() == 1
timestamp("2020-02-29T00:00:00Z").getDate() == 29 && timestamp("2020-02-29T00:00:00Z").getDayOfMonth() == 28
timestamp("2020-03-01T00:00:00Z").getDayOfWeek() == 0 && timestamp("2020-03-01T00:00:00Z").getDayOfYear() == 60
timestamp("2020-02-29T01:02:03.456Z").getHours() == 1 && timestamp("2020-02-29T01:02:03.456Z").getMilliseconds() == 456
timestamp("2020-01-01T00:00:00Z").getHours("-08:00") == 16 && timestamp("2020-01-01T00:00:00Z").getHours("02:30") == 2
timestamp("2020-01-01T01:00:00+01:00") == timestamp("2020-01-01T00:00:00Z")
timestamp("2020-01-01T00:00:00Z") + duration("36h") == timestamp("2020-01-02T12:00:00Z")
timestamp("2020-01-02T00:00:00Z") - timestamp("2020-01-01T00:00:00Z") == duration("24h")
string(timestamp("2020-01-01T00:00:00.250Z")) == "2020-01-01T00:00:00.25Z" && string(duration("1h1.5s")) == "3601.5s"
string(timestamp("0001-01-01T00:00:00Z")) == "0001-01-01T00:00:00Z"
duration("-1.5s") < duration("0") && duration("90m").getHours() == 1 && duration("1h30m").getMinutes() == 90
duration("1500ms").getMilliseconds() == 1500 && duration("1us") > duration("999ns") && duration("1m") == duration("60s")
# strings
"héllo".size() == 5 && "hello".charAt(4) == "o" && "hello".charAt(5) == "" && size("") == 0
"hello mellow".indexOf("ello") == 1 && "hello mellow".indexOf("ello", 2) == 7 && "a".indexOf("z") == -1 && "a".indexOf("") == 0
"hello mellow".lastIndexOf("ello") == 7 && "hello mellow".lastIndexOf("ello", 6) == 1 && "a".lastIndexOf("") == 1
"TacoÇ".lowerAscii() == "tacoÇ" && "tacoç".upperAscii() == "TACOç" && "\u00a0 x\t".trim() == "x"
"hello hello".replace("he", "we") == "wello wello" && "hello hello".replace("he", "we", 1) == "wello hello"
"hello".replace("", "_") == "_h_e_l_l_o_" && "hello".replace("h", "", 0) == "hello"
"a b c".split(" ") == ["a", "b", "c"] && "a b c".split(" ", 2) == ["a", "b c"] && "a b".split(" ", 0) == [] && "ab".split("") == ["a", "b"]
"tacocat".substring(4) == "cat" && "tacocat".substring(0, 4) == "taco" && ["a", "b"].join() == "ab" && ["a", "b"].join("-") == "a-b"
"hello".startsWith("he") && "hello".endsWith("lo") && "hello".contains("ell") && !"hello".contains("z")
strings.quote("a\"b\n") == "\"a\\\"b\\n\""
"%d %s %.1f %e".format([1, dyn("a"), dyn(2.55), dyn(1200.0)]) == "1 a 2.5 1.200000e+03"
"%x %X %o %b %b %%".format([255, dyn("hi"), dyn(8), dyn(5), dyn(true)]) == "ff 6869 10 101 1 %"
"%s %s %s %s".format([[1, 2], dyn({"b": dyn(1), "a": dyn("x")}), dyn(null), dyn(duration("1s"))]) == "[1, 2] {a: x, b: 1} null 1s"
# patterns
"foobar".matches("o+b") && !"foobar".matches("^o") && matches("abc", "b")
"abc 123".find("[0-9]+") == "123" && "abc".find("z") == "" && "a1b2".findAll("[0-9]") == ["1", "2"] && "a1b2".findAll("[0-9]", 1) == ["1"]
# lists
[1, 2, 2].isSorted() && !["b", "a"].isSorted() && [1, 2].sum() == 3 && [1.5, 2.0].sum() == 3.5 && [duration("1s"), duration("2s")].sum() == duration("3s")
[3, 1, 2].min() == 1 && ["a", "c", "b"].max() == "c" && [1, 2, 2].indexOf(2) == 1 && [1, 2, 2].lastIndexOf(2) == 2 && [1].indexOf(5) == -1
[1, 2, 3, 4].slice(1, 3) == [2, 3] && [[1], [2, 3]].flatten() == [1, 2, 3] && [dyn(1), dyn([dyn(2), dyn([3])])].flatten(2) == [1, 2, 3]
[3, 1, 2].sort() == [1, 2, 3] && ["bb", "a"].sortBy(x, x.size()) == ["a", "bb"] && [1, 2].reverse() == [2, 1] && [1, 1, 2].distinct() == [1, 2]
lists.range(3) == [0, 1, 2] && lists.range(0) == [] && [1].first() == optional.of(1) && [].last() == optional.none()
sets.contains([1, 2], [2, 1, 1]) && sets.equivalent([1, 1], [1]) && sets.intersects([1], [1, 2]) && !sets.intersects([1], [])
device.attributes["d"].l.includes("x") && !device.attributes["d"].l.includes("z") && device.attributes["d"].n.includes(4)
# macros
[1, 2, 3].all(x, x > 0) && [1, 2, 3].exists(x, x == 2) && [1, 2, 3].exists_one(x, x == 2) && [].all(x, x > 0) && ![].exists(x, true)
[1, 2, 3].filter(x, x > 1) == [2, 3] && [1, 2].map(x, x * 2) == [2, 4] && [1, 2].map(x, x > 1, x * 2) == [4]
{"a": 1, "b": 2}.map(k, k).sort() == ["a", "b"] && {"a": 1}.all(k, v, k == "a" && v == 1) && {true: 1}.exists(k, k)
[5, 6].exists(i, v, i == 1 && v == 6) && [1, 2].existsOne(i, v, v == 2) && [1, 2].transformList(i, v, i + v) == [1, 3]
[1, 2].transformList(i, v, i > 0, v) == [2] && [7].transformMap(i, v, v + 1) == {0: 8} && {"a": "b"}.transformMapEntry(k, v, {v: k}) == {"b": "a"}
cel.bind(a, 2, cel.bind(b, a + 1, a * b)) == 6
# optionals
optional.of(1).hasValue() && !optional.none().hasValue() && optional.none().orValue(3) == 3 && optional.of(2).value() == 2
optional.none().or(optional.of(1)).value() == 1 && optional.ofNonZeroValue(0) == optional.none() && optional.ofNonZeroValue("a").hasValue()
optional.of(2).optMap(x, x + 1).value() == 3 && optional.of(1).optFlatMap(x, optional.of(x)) == optional.of(1) && !optional.none().optMap(x, 1).hasValue()
[?optional.none(), 1] == [1] && {?"a": optional.of(1), ?"b": optional.none()} == {"a": 1} && [1, 2][?5] == optional.none()
{"a": {"b": 1}}.?a.b.value() == 1 && !{"a": {"b": 1}}.?x.b.hasValue() && {"a": [1]}[?"a"][0].value() == 1
optional.unwrap([optional.of(1), optional.none()]) == [1] && [optional.of(1)].unwrapOpt() == [1]
# quantities and versions
quantity("1Ki").isGreaterThan(quantity("1k")) && quantity("1").add(2) == quantity("3") && quantity("5").sub(quantity("2")).asInteger() == 3
quantity("1500m").isInteger() == false && sign(quantity("-1")) == -1 && quantity("1.5").asApproximateFloat() == 1.5 && quantity("1").compareTo(quantity("2")) == -1
isQuantity("1Ki") && !isQuantity("1ki") && quantity("50k") == quantity("50000") && quantity("1").isLessThan(quantity("1001m"))
device.capacity["d"].mem.compareTo(quantity("40Gi")) >= 0 && device.capacity["d"].mem == quantity("40960Mi")
isSemver("1.0.0-rc.1+b") && !isSemver("v1.0") && isSemver("v1.0", true) && semver("v1.2", true) == semver("1.2.0")
semver("1.2.3").major() == 1 && semver("1.2.3").minor() == 2 && semver("1.2.3").patch() == 3 && semver("1.0.0").isLessThan(semver("1.0.1"))
device.attributes["d"].v.compareTo(semver("1.2.3")) == 0 && device.attributes["d"].v == semver("1.2.3+build") && device.attributes["d"].v.major() == 1
# addresses
ip("10.0.0.1").family() == 4 && ip("::1").isLoopback() && ip("0.0.0.0").isUnspecified() && ip("169.254.1.1").isLinkLocalUnicast() && ip("224.0.0.1").isLinkLocalMulticast()
ip("10.0.0.1").isGlobalUnicast() && !ip("255.255.255.255").isGlobalUnicast() && isIP("::ffff") && !isIP("::ffff:1.2.3.4") && !isIP("01.2.3.4") && !isIP("fe80::1%eth0")
ip.isCanonical("2001:db8::1") && !ip.isCanonical("2001:DB8::1") && string(ip("2001:DB8::1")) == "2001:db8::1"
cidr("10.0.0.0/8").containsIP("10.1.2.3") && cidr("10.0.0.0/8").containsIP(ip("10.1.2.3")) && !cidr("10.0.0.0/8").containsIP("::1")
cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16") && !cidr("10.1.0.0/16").containsCIDR(cidr("10.0.0.0/8")) && cidr("10.1.2.3/8").masked() == cidr("10.0.0.0/8")
cidr("2001:db8::1/64").prefixLength() == 64 && cidr("1.2.3.4/8").ip() == ip("1.2.3.4") && string(cidr("::/0")) == "::/0" && isCIDR("1.2.3.4/32") && !isCIDR("1.2.3.4/33")
# URLs and formats
url("https://example.com:80/a/b?x=1&x=2&y=%20").getHost() == "example.com:80" && url("https://example.com:80/").getHostname() == "example.com"
url("https://[::1]:80/").getHostname() == "::1" && url("https://example.com:80/").getPort() == "80" && url("HTTPS://a/").getScheme() == "https"
url("https://a/p?x=1&x=2&y=%20").getQuery() == {"x": ["1", "2"], "y": [" "]} && url("/a b").getEscapedPath() == "/a%20b" && isURL("/a") && !isURL("a/b") && !isURL("https://a b/")
format.dns1123Label().validate("a-b") == optional.none() && format.dns1123Label().validate("A").hasValue() && format.named("uuid").hasValue() && !format.named("x").hasValue()
format.uuid().validate("123e4567-e89b-12d3-a456-426614174000") == optional.none() && format.date().validate("2020-02-30").hasValue() && format.byte().validate("aGk=") == optional.none()
format.dns1123LabelPrefix().validate("a-") == optional.none() && format.qualifiedName().validate("a.b/c") == optional.none() && format.datetime().validate("x").hasValue()
# the device
device.driver == "d" && device.allowMultipleAllocations == false && "d" in device.attributes && !("x" in device.attributes) && device.attributes["x"].size() == 0
has(device.attributes["d"].n) && !has(device.attributes["d"].z) && !has(device.attributes["x"].z) && device.attributes["x"].?z.orValue(1) == 1
device.attributes["d"].s.split(",").exists(x, x == "b") && device.attributes["d"].n in [3, 4] && device.attributes["d"].n + 1 == 5
device.?driver.orValue("") == "d" && device.attributes[?"d"].hasValue() && device.attributes.exists(domain, domain == "d")
"""  # noqa: E501

TRUE += r"""
"abc".indexOf("a", 100) == -1
"abc".lastIndexOf("a", 100) == -1
"abc".indexOf("", 100) == 100 && "abc".lastIndexOf("", 100) == 100
"abcabc".lastIndexOf("abc", 4) == 3 && "abcabc".lastIndexOf("abc", 2) == 0
"ab".findAll(".*") == ["ab"] && "".findAll(".*") == [""] && "aXb".findAll("X*") == ["", "X", ""]
"a\\C".matches("\\Q\\C\\E") && "C".matches("\\\\?C")
"%s %d".format(["a", 1]) == "a 1"
"%f|%e".format(["NaN", "-Infinity"]) == "NaN|-Infinity"
quantity("1").isInteger() && !quantity("1000m").isInteger() && !quantity("1.0").isInteger()
quantity("1Ti").isInteger() && !quantity("1Pi").isInteger() && !quantity("1.5Ki").isInteger()
quantity("1k").add(quantity("5")).asInteger() == 1005 && !quantity("1").add(quantity("1000m")).isInteger()
quantity("1").sub(quantity("0m")).isInteger() && !quantity("0").sub(quantity("1000m")).isInteger()
18446744073709551615u / 1u == 18446744073709551615u && 18446744073709551615u % 10u == 5u
!(1 / 0 in []) && !(device.attributes["d"].nope in [])
device.attributes["d"].n >= device.attributes["d"].i.first().value()
device.attributes["d"].n >= device.attributes["d"].i.reverse()[0]
device.attributes["d"].n - device.attributes["d"].i.distinct()[0] > 0.0 || true
"""
FAIL = r"""
9223372036854775807 + 1 == 0
-9223372036854775807 - 2 == 0
9223372036854775807 * 2 == 0
-9223372036854775808 / -1 == 0
-(-9223372036854775808) == 0
0u - 1u == 0u
18446744073709551615u + 1u == 0u
1 / 0 == 0
1 % 0 == 0
1u / 0u == 0u
int(0.0 / 0.0) == 0
[1][1] == 1
[1][-1] == 1
{"a": 1}["b"] == 1
{"a": 1}.b == 1
{"a": 1, "a": 2} == {}
{dyn([1]): 1} == {}
dyn(1).foo == 1
dyn(1)[0] == 1
dyn("a") < dyn(1)
dyn(true) > dyn(0)
dyn(1) + dyn("a") == 1
!dyn(1)
dyn(1).size() == 1
dyn(1) ? true : false
dyn(5).exists(x, true)
"a".charAt(2) == ""
"a".substring(2) == ""
"abc".substring(2, 1) == ""
"a".indexOf("a", -1) == 0
"a".lastIndexOf("a", -1) == 0
"%s".format([dyn(quantity("1"))]) == "1"
"%s".format([device.attributes["d"].v]) == "1.2.3"
"%f".format([dyn("3")]) == "3"
quantity("1000m").asInteger() == 1
quantity("1").add(quantity("1000m")).asInteger() == 2
dyn("%d").format([]) == ""
"%d".format([dyn("a")]) == ""
dyn("%q").format(["a"]) == ""
"%.200f".format([1.0]) == ""
"%f".format([dyn(1)]) == ""
[].min() == 0
[].max() == 0
[dyn(1), dyn("a")].sort() == []
[1].slice(0, 2) == []
[1].slice(-1, 1) == []
lists.range(-1) == []
optional.none().value() == 1
quantity("abc") == quantity("1")
quantity("1.5").asInteger() == 1
semver("1") == semver("1.0.0")
ip("1.2.3") == ip("1.2.3.4")
ip.isCanonical("x")
cidr("1.2.3.4") == cidr("1.2.3.4/8")
url("a") == url("/a")
timestamp(device.driver) == timestamp("2020-01-01T00:00:00Z")
duration(device.driver) == duration("1s")
timestamp("9999-12-31T23:59:59Z") + duration("1h") == timestamp("2020-01-01T00:00:00Z")
timestamp("2020-01-01T00:00:00Z").getHours("Nowhere/Land") == 0
"a".matches(device.attributes["d"].s + "(")
device.attributes["d"].nope == 1
sign(device.capacity["x"].mem) == 1
device.attributes["d"].n
device.attributes["d"].s > 1
device.attributes["d"].n.isGreaterThan(semver("1.0.0"))
device.attributes["d"].s.exists(x, true)
device.attributes["d"].n.matches("4")
[1, 1].transformMapEntry(i, v, {v: i}) == {}
[1, 2].exists_one(x, 1 / (x - 1) == 1)
"""


REFUSED = r"""
int("9223372036854775808") == 0
int("") == 0
int("1_0") == 0
int(1e19) == 0
int(9223372036854775808u) == 0
int(dyn("x")) == 0
int(string("x")) == 0
uint(-1) == 0u
uint("-1") == 0u
double("abc") == 0.0
double("1e999") == 0.0
bool("yes")
false && bool("yes")
[1].exists(x, bool("yes"))
string(b"\xff") == ""
duration("x") == duration("1s")
timestamp("x") == timestamp("2020-01-01T00:00:00Z")
"a".matches("(")
matches("a", "(")
"a".find("(") == ""
"a".findAll("(") == []
"a".findAll(string("("), 2) == []
"a".matches("\\C")
"a".matches("[\\C]")
[1].existsOne(x, x == 1)
quantity("1").sign() == 1
"%s".format([quantity("1")]) == "1"
"%s".format([device.capacity["d"].m]) == "1"
[1, "a"].size() == 2
{"a": 1, "b": "c"}.size() == 2
"""


def lines(text):
    return [line for line in text.strip().splitlines() if line and not line.startswith("#")]


def both_ways(expression):
    selector = compile_selector(expression, LISTS, stored=True)
    yield lambda: selector.matches(DEVICE)
    yield lambda: evaluate(selector.program.checked, DEVICE, Meter(10**30))


@pytest.mark.parametrize("expression", lines(TRUE))
def test_holds(expression):
    for run in both_ways(expression):
        assert run() is True


@pytest.mark.parametrize("expression", lines(REFUSED))
def test_is_refused_before_it_runs(expression):
    """Conversions of literals and written patterns fail while compiling, wherever they stand."""
    with pytest.raises(CompileError):
        compile_selector(expression, LISTS, stored=True)


@pytest.mark.parametrize("expression", lines(FAIL))
def test_fails_when_it_runs(expression):
    """A clean error: never a wrong answer, and never an exception of Python's own."""
    careful = list(both_ways(expression))[1]
    selector = compile_selector(expression, LISTS, stored=True)
    with pytest.raises(EvaluationError):
        selector.matches(DEVICE)
    try:
        found = careful()
    except EvaluationError:
        return
    assert not isinstance(found, bool)
