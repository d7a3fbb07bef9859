"""Time counts for the package that it was spent for."""

from allot.bench.profiling import package_of, summed

WRITER = ("/x/src/allot/apiserver/writing.py", 1, "write")
LEDGER = ("/x/src/allot/allocation/ledger.py", 1, "fly")
JSON = ("/usr/lib/python3.11/json/__init__.py", 1, "loads")
SORT = ("~", 0, "<method 'sort' of 'list' objects>")


def test_libraries_count_for_their_callers():
    """JSON was called by the writer alone; sorting by JSON for one second and by the ledger for three."""
    stats = {
        WRITER: (1, 1, 2.0, 5.0, {}),
        LEDGER: (1, 1, 1.0, 4.0, {}),
        JSON: (1, 1, 2.0, 3.0, {WRITER: (1, 1, 2.0, 3.0)}),
        SORT: (2, 2, 4.0, 4.0, {JSON: (1, 1, 1.0, 1.0), LEDGER: (1, 1, 3.0, 3.0)}),
    }
    profile = summed(stats)
    assert {name: round(seconds, 3) for name, seconds in profile.seconds_by_package.items()} == {
        "apiserver": 5.0,
        "allocation": 4.0,
    }
    assert profile.dearest[0][2] == "<method 'sort' of 'list' objects>"


def test_what_calls_itself_counts_for_somebody():
    stats = {JSON: (2, 1, 1.0, 1.0, {JSON: (1, 1, 0.5, 0.5)})}
    assert sum(summed(stats).seconds_by_package.values()) == 1.0


def test_a_package_is_known_by_its_folder():
    assert package_of("/x/src/allot/store/sqlite/engine.py") == "store"
    assert package_of("/x/lib/site-packages/allot/other/y.py") == ""
    assert package_of("/usr/lib/python3.11/asyncio/events.py") == ""
