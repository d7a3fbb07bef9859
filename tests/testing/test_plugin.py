"""What a driver author writes to test against a real server."""

from allot.api import errors


def test_the_fixture_gives_a_server_that_keeps_what_it_is_told(allot_server):
    async def story():
        configs = allot_server.client().resource("", "v1", "configmaps")
        made = await configs.create({"metadata": {"name": "a"}, "data": {"x": "1"}}, "default")
        read = await configs.get("a", "default")
        assert read.uid == made.uid
        assert read.fields["data"] == {"x": "1"}
        try:
            await configs.get("b", "default")
        except errors.NotFound as missing:
            return missing.message

    assert allot_server.run(story()) == 'configmaps "b" not found'
