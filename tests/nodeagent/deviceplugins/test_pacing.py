"""Of many words the first and the last are heeded."""

import asyncio

from allot.nodeagent.deviceplugins.pacing import Paced


def test_a_flood_of_words_is_two():
    async def play() -> None:
        heeded: list[int] = []
        paced = Paced(heeded.append, 0.01)
        for word in range(1000):
            paced.say(word)
        assert heeded == [0], "the first one at once"
        await asyncio.sleep(0.05)
        assert heeded == [0, 999]
        paced.say(1000)
        assert heeded == [0, 999, 1000], "and so is one that comes after a while"

    asyncio.run(play())


def test_what_is_forgotten_is_not_heeded_later():
    async def play() -> None:
        heeded: list[int] = []
        paced = Paced(heeded.append, 0.01)
        for word in range(2):
            paced.say(word)
        paced.forget()
        await asyncio.sleep(0.05)
        assert heeded == [0]

    asyncio.run(play())
