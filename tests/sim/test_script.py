"""What scripts promise those who read what came of them: situations that only some seeds would have."""

from allot.sim import Scope, script, things
from allot.sim.lots import Lots
from allot.sim.step import Step

SCOPE = Scope()
LAST_S = SCOPE.seconds * 0.98


def scripts(many: int = 40) -> list[list[Step]]:
    return [script.write(Lots(seed), SCOPE) for seed in range(many)]


def test_in_the_last_minute_people_work_and_no_component_dies():
    """A leader that forgets something is found out only if no other leader follows."""
    for steps in scripts():
        late = [step for step in steps if step.at_s >= LAST_S]
        assert {"clear out", "copy claim"} <= {step.deed for step in late}
        assert not [step for step in late if step.deed in ("crash", "freeze")]


def test_what_is_there_at_last_is_made_smaller_or_ended():
    deeds = {step.deed for steps in scripts() for step in steps if step.at_s >= LAST_S}
    assert {"scale", "delete namespace"} <= deeds


def test_pods_come_to_a_node_that_the_controllers_have_not_heard_of_again():
    """For so long that a controller which trusts its cache takes the pod for lost."""
    found = 0
    for steps in scripts():
        for pod in (step for step in steps if step.of.get("name") == "newcomer"):
            back = next(step for step in steps if step.deed == "return node")
            deaf = [step for step in steps if step.deed == "deaf" and step.of["resource"] == "nodes"]
            ends_s = max(step.at_s + step.of["seconds"] for step in deaf if step.at_s < back.at_s)
            assert pod.of["node"] == back.of["node"]
            assert back.at_s + 45 < pod.at_s < ends_s - 40
            found += 1
    assert found >= 5


def test_a_pool_that_is_published_in_parts_has_names_that_nobody_knows_yet():
    def names(generation: int, parts: int) -> set[str]:
        slices = things.slices_of("node-0", 4, generation, parts)
        return {device["name"] for one in slices for device in one["spec"]["devices"]}

    assert len(names(3, 2)) == 4
    assert not names(3, 2) & (names(1, 1) | names(2, 2))
