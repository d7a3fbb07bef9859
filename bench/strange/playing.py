"""One round: strange requests into a running cluster, a look, a restart, another look.

When a round fails, its requests are played again by halves (`shortest`), until no half fails any
more: what is left is the finding.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attacks import wire

from .asking import ACTORS, Asker
from .judging import judge, tracebacks
from .requests import Question, Sent
from .world import Failed, World

_MENDS_MAX = 4
_CONNECTIONS = 2  # of each person
_CALM_S = 1.0


@dataclass
class Round:
    """What happened in a round."""

    seed: int
    sent: list[Sent] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    stored: Counter[str] = field(default_factory=Counter)  # by kind
    by_actor: Counter[str] = field(default_factory=Counter)
    errors: list[dict[str, Any]] = field(default_factory=list)
    failed: str = ""
    peak_mb: float = 0.0
    ready_again_s: float = 0.0
    wall_s: float = 0.0


async def play(seed: int, objects: int, folder: Path) -> Round:
    """A round of so many requests, until the cluster was judged twice."""
    done, began, world = Round(seed), time.monotonic(), World(folder)
    try:
        await world.start()
        await world.settle()
        asker = Asker(seed, world.nodes)
        await _send(world, asker, objects, done)
        await _judge_twice(world, done, kindly=seed % 2 == 0)
    except Failed as failure:
        done.failed = str(failure)
    finally:
        world.clear()
    done.wall_s = time.monotonic() - began
    return done


async def replay(sent: Sequence[Sent], folder: Path) -> str:
    """The same requests again, in their order; what failed, or nothing."""
    world, done = World(folder), Round(0)
    try:
        await world.start()
        await world.settle()
        for one in sent:
            answer = await world.send(one)
            if _is_error(one, answer):
                return f"{one.method} {one.path} was answered {answer.said}"
        await _judge_twice(world, done, kindly=True)
    except Failed as failure:
        return str(failure)
    finally:
        world.clear()
    return ""


async def shortest(
    sent: Sequence[Sent], deadline: float, say: Callable[[str], None]
) -> tuple[list[Sent], str]:
    """The least that still fails, by leaving out halves, then quarters; and how it fails."""
    left, failure = list(sent), ""
    parts = 2
    while len(left) > 1 and time.monotonic() < deadline:
        size = max(1, -(-len(left) // parts))
        for start in range(0, len(left), size):
            if time.monotonic() > deadline:
                break
            fewer = [*left[:start], *left[start + size :]]
            with TemporaryDirectory(prefix="allot-strange-") as folder:
                said = await replay(fewer, Path(folder))
            say(f"{len(fewer)} of {len(left)} requests: {said[:80] or 'fine'}")
            if said:
                left, failure, parts = fewer, said, max(2, parts - 1)
                break
        else:
            if size == 1:
                break
            parts = min(len(left), parts * 2)
    return left, failure


async def _judge_twice(world: World, done: Round, *, kindly: bool) -> None:
    await asyncio.sleep(_CALM_S)
    await judge(world, "canary-before")
    done.peak_mb = world.peak_mb()
    await world.end(kindly=kindly)
    done.ready_again_s = await world.start()
    await judge(world, "canary-after")
    await world.end(kindly=True)
    said = tracebacks(world.said())
    if said:
        raise Failed("it logged tracebacks while it ended: " + "\n".join(said[:5]))


async def _send(world: World, asker: Asker, objects: int, done: Round) -> None:
    """Several people at once, each over connections of their own."""
    questions, left = asker.questions(), objects
    lines: dict[str, asyncio.Queue[Question | None]] = {actor: asyncio.Queue(8) for actor in ACTORS}

    async def speak(actor: str) -> None:
        connection: wire.Connection | None = None
        while (question := await lines[actor].get()) is not None:
            for _ in range(_MENDS_MAX):
                connection = connection or await world.connect(actor)
                if connection is None:
                    done.answers["not let in"] += 1
                    break
                done.sent.append(question.sent)
                answer = await connection.ask(world.request(question.sent))
                if answer.said in ("cut", "silent"):
                    connection.close()
                    connection = None
                mended = _heard(question, answer, asker, done)
                if mended is None:
                    break
                question = mended
        if connection is not None:
            connection.close()

    tasks = [asyncio.create_task(speak(actor)) for actor in ACTORS for _ in range(_CONNECTIONS)]
    try:
        while left > 0:
            world.require_alive()
            question = next(questions)
            await lines[question.sent.actor].put(question)
            left -= 1
    finally:
        for actor in ACTORS:
            for _ in range(_CONNECTIONS):
                await asyncio.wait_for(lines[actor].put(None), 60)
        await asyncio.gather(*tasks)


def _heard(question: Question, answer: wire.Answer, asker: Asker, done: Round) -> Question | None:
    """Count an answer; the same question with less in it, if it was refused for its fields."""
    done.answers[answer.reason] += 1
    if answer.said.startswith("2"):
        asker.learn(question, answer.body)
        if question.kind in ("create", "put", "patch", "apply") and question.target is not None:
            done.stored[question.target.kind.resource] += 1
            done.by_actor[question.sent.actor] += 1
    elif _is_error(question.sent, answer):
        said = answer.body[:400].decode(errors="replace")
        done.errors.append({"request": question.sent.as_json(), "answer": answer.said, "said": said})
    elif answer.said == "422":
        return question.mended(_causes(answer.body))
    return None


def _is_error(sent: Sent, answer: wire.Answer) -> bool:
    """From 500 up, or no answer. Meant so, as upstream answers: a 504 to a watch that has to start
    over, a 503 for the logs of a node that has none, a 500 to an eviction under two budgets."""
    path = sent.path.partition("?")[0]
    if answer.said == "503" and path.endswith("/log"):
        return False
    if answer.said == "500" and path.endswith("/eviction") and b"more than one" in answer.body:
        return False
    return answer.said != "504" and not (answer.said.isdigit() and int(answer.said) < 500)


def _causes(body: bytes) -> list[str]:
    try:
        details = json.loads(body).get("details") or {}
        return [cause.get("field", "") for cause in details.get("causes") or ()]
    except (ValueError, AttributeError):
        return []
