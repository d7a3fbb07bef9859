"""Planted bugs, each of which the simulator must find.

    python tools/sim_mutants.py [--seeds 200] [--jobs 2] [--json FILE] [NAME ...]

Every mutant is one small edit, made in a copy of the tree as it was when this began. Seeds
are run one after another until a checker speaks up; a mutant that survives all of them, or
whose text is no longer found, makes this fail, and so does a tree that fails without any.
Prints a table: the seed that found the mutant, the mutant, and what was said.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONTROLLERS = "src/allot/controllers"
CLAIMS = f"{CONTROLLERS}/resourceclaims"
COLLECTOR = f"{CONTROLLERS}/garbagecollection"
INFORMERS = "src/allot/informers"
SCHEDULER = "src/allot/scheduler"
NODE = "src/allot/node"
AGENT = "src/allot/nodeagent"
KIT = "src/allot/driver"
AUTOSCALER = "src/allot/autoscaler"
SANE_SEEDS = 2
PODS, PODS_BESIDE = 50, 10
"""In a world, and in one that is about one generation of claims: those have pods of their own."""
NOTHING = "no seed found anything"


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    old: str
    new: str
    scheduler: str = "simple"  # which one the worlds have
    agents: bool = False  # whether they have real agents and drivers
    classic: bool = False  # whether they have classic claims
    compute: bool = False  # whether they have compute resources
    numeric: bool = False  # whether they have claims with numeric parameters
    autoscaler: bool = False  # whether they have an autoscaler, and groups of nodes


ON_MACHINES = (
    Mutant(
        "an agent prepares claims that are not reserved for the pod",
        f"{NODE}/claims.py",
        "    if not is_reserved:",
        "    if False:",
    ),
    Mutant(
        "an agent does not write down what it tells drivers",
        f"{AGENT}/preparing.py",
        """            return
        await self._keep()
        failures""",
        """            return
        failures""",
    ),
    Mutant(
        "what agents and drivers write is not synced",
        "src/allot/base/files.py",
        "                    self._sync(temporary)\n",
        "                    pass\n",
    ),
    Mutant(
        "the names of files that agents and drivers write are not synced",
        "src/allot/base/files.py",
        "                self._sync(path.parent)\n",
        "                pass\n",
    ),
    Mutant(
        "the end of a pod is told before its devices are given back",
        f"{NODE}/plan.py",
        "        if state.devices is not None or state.is_told:\n            return Stage.ENDED\n",
        """        if not (state.is_gone or pod.is_finished):
            return Stage.UNLISTED
        if state.devices is not None or state.is_told:
            return Stage.ENDED
""",
    ),
    Mutant(
        "a node says that it has let go before it has",
        f"{NODE}/plan.py",
        "        case Stage.ENDED:\n            return Unprepare()",
        "        case Stage.ENDED:\n            return Unprepare() if state.is_unlisted else Unlist()",
    ),
    Mutant(
        "devices are given back while containers run",
        f"{NODE}/plan.py",
        "has_ended = _must_go(pod, state) and not (has_containers and state.observed.runs)",
        "has_ended = _must_go(pod, state)",
    ),
    Mutant(
        "a claim that several pods share is given back with the first of them",
        f"{AGENT}/told.py",
        "if entry.pods != {pod}:",
        "if False:",
    ),
    Mutant(
        "what a driver could not give back counts as given back",
        f"{AGENT}/preparing.py",
        "_require_none(failures, NotReady)",
        "pass",
    ),
    Mutant(
        "an agent that begins anew does not tell drivers again",
        f"{AGENT}/machine.py",
        "await self._preparing.prepare_again(pod.uid)",
        "pass",
    ),
    Mutant(
        "an agent that begins anew does not look what pods there were",
        f"{AGENT}/pods.py",
        "return [_pod(name, content) for name, content in found if content is not None]",
        "return []",
    ),
    Mutant(
        "a container gets all devices of its pod",
        f"{AGENT}/giving.py",
        """        for asked in _asked(pod, container)
        if asked.claim in by_name
        for device in _devices(by_name[asked.claim], asked.request)
    ]
    return tuple""",
        """        for entry in by_name.values()
        for device in _devices(entry, "")
    ]
    return tuple""",
    ),
    Mutant(
        "slices of a driver that is away stay",
        f"{AGENT}/loop.py",
        "await self._slices().delete_collection(field_selector=selector)",
        "pass",
    ),
    Mutant(
        "a driver prepares again what it has prepared",
        f"{KIT}/plugin.py",
        "ready = {uid: entry for uid, entry in known.items() if self._state.is_prepared(entry)}",
        "ready = {uid: entry for uid, entry in known.items() if False}",
    ),
    Mutant(
        "a driver begins before it has written down that it does",
        f"{KIT}/plugin.py",
        "await self._state.put(map(begun, usable))  # STATE1",
        "pass",
    ),
    Mutant(
        "a driver answers before that is on disk",
        f"{KIT}/plugin.py",
        "await self._state.put(entries.values())  # STATE2",
        "pass",
    ),
    Mutant(
        "what was prepared before a reboot counts as prepared",
        f"{KIT}/state.py",
        "return entry.boot == self.boot",
        "return bool(entry.boot)",
    ),
    Mutant(
        "a driver forgets a claim and leaves its device as it is",
        f"{KIT}/plugin.py",
        "                await done(self._deeds.unprepare, entry)\n",
        "",
    ),
    Mutant(
        "the CDI file of a claim that was given back stays",
        f"{KIT}/plugin.py",
        "                await asyncio.to_thread(self._files.remove, entry.uid)\n",
        "",
    ),
)
"""Of agents and the kit for drivers: found where there are some."""

OF_CAPACITY = (
    Mutant(
        "what a driver says it has later on is not published",
        f"{AGENT}/capacity_loop.py",
        "            self._said[driver] = told(message)\n",
        "            self._said.setdefault(driver, told(message))\n",
    ),
    Mutant(
        "capacity of drivers that are gone stays",
        f"{AGENT}/capacity_loop.py",
        "            self._said[driver] = None\n",
        "            pass\n",
    ),
    Mutant(
        "a broken stream of capacity is not opened again",
        f"{AGENT}/capacity_loop.py",
        "                if failed.code is Code.UNIMPLEMENTED:\n",
        "                if True:\n",
    ),
    Mutant(
        "capacity that was published twice stays so",
        f"{AGENT}/capacity.py",
        "boxes = [_Box(one) for one in objects]",
        "boxes = [_Box(one) for one in objects[:1]]",
    ),
    Mutant(
        "capacity that somebody else deletes or changes stays so",
        f"{AGENT}/capacity_loop.py",
        "            self._loop.add(_driver(change.object))\n",
        "            pass\n",
    ),
    Mutant(
        "capacity belongs to a node that is not there",
        f"{AGENT}/capacity_loop.py",
        "Source(driver, self._node, owner_reference(node))",
        'Source(driver, self._node, {**owner_reference(node), "uid": "gone"})',
    ),
    Mutant(
        "an instance that is shown is not brought up to date",
        f"{AGENT}/capacity.py",
        'list(object.fields.get("instances") or ()) == instances',
        'len(object.fields.get("instances") or ()) == len(instances)',
    ),
    Mutant(
        "a driver tells what it has once and no more",
        f"{KIT}/numeric_driver.py",
        "            await turn.wait()\n",
        "            await asyncio.Event().wait()\n",
    ),
)
"""Of what drivers of numeric parameters have on machines with agents."""

OF_CLASSIC = (
    Mutant(
        "a node is selected before every driver has answered",
        f"{SCHEDULER}/negotiating.py",
        "return tuple(one for one in wants if one.entry not in answers)",
        "return ()",
    ),
    Mutant(
        "a pod is bound where a claim of it cannot be used",
        f"{SCHEDULER}/negotiating.py",
        'return "" if is_reachable(claim, node) else f"{name} was allocated, and not for node {node.name}"',
        'return ""',
    ),
    Mutant(
        "a claim that a driver allocated is not reserved",
        f"{SCHEDULER}/negotiation.py",
        "(*reserved, *map(ReserveClaim, claims))",
        "reserved",
    ),
    Mutant(
        "drivers are asked and not waited for",
        f"{SCHEDULER}/negotiation.py",
        "        if asked is None:\n",
        "        if True:\n",
    ),
    Mutant(
        "beside a classic claim the structured ones are forgotten",
        f"{SCHEDULER}/negotiation.py",
        "writes=(*ordered, *rest, EndTalk(talk))",
        "writes=(*ordered, EndTalk(talk))",
    ),
    Mutant(
        "the node that was chosen is not written",
        f"{SCHEDULER}/negotiation_writes.py",
        '{"selectedNode": selected} if selected else {}',
        "{}",
    ),
    Mutant(
        "a talk that a dead scheduler left stays",
        f"{SCHEDULER}/sweeping.py",
        "if pod.spec.node_name or pod.view.is_finished:",
        "if False:",
    ),
    Mutant(
        "nobody listens to drivers",
        f"{SCHEDULER}/mirror.py",
        "    snapshot.put_talk(talk)\n",
        "",
    ),
    Mutant(
        "classes of classic claims are not seen",
        f"{SCHEDULER}/mirror.py",
        "    snapshot.put_resource_class(change.object)\n",
        "",
    ),
    Mutant(
        "answers are looked for under the name of the claim",
        f"{SCHEDULER}/plugins/classic/asking.py",
        "Want(entries[claim.key.name], claim, found.driver_name)",
        "Want(claim.key.name, claim, found.driver_name)",
    ),
    Mutant(
        "nobody owns what is said about a pod",
        f"{SCHEDULER}/negotiation_writes.py",
        '"namespace": pod.key.namespace, "ownerReferences": [owner]}',
        '"namespace": pod.key.namespace}',
    ),
    Mutant(
        "the claim controller clears what drivers allocated",
        "src/allot/api/resource/lifecycle.py",
        "CLASSIC_DELAYED: Final = Lifecycle(None, Ending.KEEP, Ending.REQUEST)",
        "CLASSIC_DELAYED: Final = Lifecycle(None, Ending.CLEAR, Ending.REQUEST)",
    ),
    Mutant(
        "the scheduler allocates classic claims as if they were structured",
        "src/allot/scheduler/plugins/claims/resolving.py",
        "        elif not claim.is_classic:\n            pending.append(claim)\n",
        "        elif claim.is_classic or True:\n            pending.append(claim)\n",
    ),
)
"""Of classic claims, with drivers that are not to be relied on: found where there are some."""

OF_NUMERIC = (
    Mutant(
        "what claims take of an instance is not counted",
        f"{SCHEDULER}/capacity_of_nodes.py",
        "shelf.append(offer_of(instance, used.consumed, is_whole=bool(used.owners)))",
        "shelf.append(Offer(instance, instance.amounts))",
    ),
    Mutant(
        "the server does not measure instances",
        "src/allot/apiserver/deciding/pools.py",
        "found[instance.id] = offers.Offer(shared=True, capacity=amounts, in_parts=True)",
        "found[instance.id] = offers.Offer(shared=True, unmeasured=True)",
    ),
    Mutant(
        "a numeric claim that nobody uses keeps what it has",
        "src/allot/api/resource/lifecycle.py",
        "NUMERIC_DELAYED: Final = Lifecycle(shape.NUMERIC_FINALIZER, Ending.CLEAR, Ending.LEAVE)",
        "NUMERIC_DELAYED: Final = Lifecycle(shape.NUMERIC_FINALIZER, Ending.KEEP, Ending.KEEP)",
    ),
    Mutant(
        "immediate numeric claims are given back with their last user",
        "src/allot/api/resource/lifecycle.py",
        "NUMERIC_IMMEDIATE: Final = Lifecycle(shape.NUMERIC_FINALIZER, Ending.KEEP, Ending.KEEP)",
        "NUMERIC_IMMEDIATE: Final = Lifecycle(shape.NUMERIC_FINALIZER, Ending.CLEAR, Ending.KEEP)",
    ),
    Mutant(
        "numeric claims are allocated without their finalizer",
        f"{SCHEDULER}/claiming.py",
        "        finalizer = numeric.limits.FINALIZER\n",
        "        finalizer = None\n",
    ),
    Mutant(
        "a numeric claim keeps its allocation when it is to go",
        f"{CLAIMS}/releasing.py",
        "    if (view.metadata.deletion_timestamp and is_protected) or is_idle(view):\n",
        "    if False:\n",
    ),
    Mutant(
        "what a driver needs of a numeric allocation is not written",
        f"{SCHEDULER}/plugins/numeric/allocating.py",
        "        resource_handle=handle.decode(),\n",
        "",
    ),
    Mutant(
        "the numeric finalizer goes before the allocation",
        f"{SCHEDULER}/claiming.py",
        """        return await self._unprotect(
            await self._claims.update_status(claim.changed({"status": NOTHING_HELD}))
        )
""",
        """        claim = await self._unprotect(claim)
        return await self._claims.update_status(claim.changed({"status": NOTHING_HELD}))
""",
    ),
    Mutant(
        "parameters that come later are not heard of",
        f"{SCHEDULER}/loop.py",
        "                self.intake.parameters(kind, standing, now_s)\n",
        "                pass\n",
    ),
)
"""Of claims with numeric parameters, and capacity that shrinks."""

OF_CLASSIC_ON_MACHINES = (
    Mutant(
        "a resource plugin is not told the handle",
        f"{AGENT}/classic.py",
        'handle = self._told.part(driver, claim.uid).handle or ""',
        'handle = ""',
    ),
    Mutant(
        "what a resource plugin answers does not come to containers",
        f"{AGENT}/classic.py",
        "if answer.cdi_devices else []",
        "if False else []",
    ),
    Mutant(
        "a resource plugin prepares before it has written down that it does",
        f"{KIT}/handed.py",
        "        await self._state.put([replace(begun(whole), handle=claim.handle)])  # STATE1\n",
        "",
    ),
    Mutant(
        "what a resource plugin could not give back counts as given back",
        f"{AGENT}/classic.py",
        """        except CallFailed as failed:
            return [_failed(driver, claim, failed)]
        self._told.unprepared""",
        """        except CallFailed as failed:
            pass
        self._told.unprepared""",
    ),
)
"""Of classic claims on machines with agents."""

GUARD = "src/allot/apiserver/writing/compute_guard.py"
COMPUTE = f"{SCHEDULER}/plugins/compute"
OF_COMPUTE = (
    Mutant(
        "a binding takes compute resources that others have",
        GUARD,
        "    if wrong:",
        "    if False:",
    ),
    Mutant(
        "a pod lets go of compute resources when it begins to run",
        GUARD,
        '_ENDED = ("Succeeded", "Failed")',
        '_ENDED = ("Succeeded", "Failed", "Running")',
    ),
    Mutant(
        "a pod that has ended keeps its compute resources",
        GUARD,
        '    if not node or (pod.get("status") or {}).get("phase") in _ENDED:',
        "    if not node:",
    ),
    Mutant(
        "one compute resource may be given once more than there are devices",
        "src/allot/api/compute/holds.py",
        "if others + count > has[name]:",
        "if others + count > has[name] + 1:",
    ),
    Mutant(
        "who holds compute resources forgets the others",
        "src/allot/api/compute/holds.py",
        "rest[name] = {**rest.get(name, {}), pod: count}",
        "rest[name] = {pod: count}",
    ),
    Mutant(
        "a binding does not say what was chosen",
        f"{SCHEDULER}/placing.py",
        "    given = taken(placed.writes)\n    if not given:",
        "    given = taken(placed.writes)\n    if given or not given:",
    ),
    Mutant(
        "raw names are not looked for among compute resources",
        f"{COMPUTE}/asking.py",
        "if not class_name and not _is_exported(name, snapshot):",
        "if not class_name:",
    ),
    Mutant(
        "a pod that is removed keeps its compute resources",
        GUARD,
        "        if before == after:",
        "        if before == after or new is None:",
    ),
)
"""Of compute resources and their classes."""

LENDING = "src/allot/nodeagent/deviceplugins"
OF_CARDS = (
    Mutant(
        "a node lends devices that others have",
        f"{LENDING}/loans.py",
        "        return frozenset(id for loan in every if loan.resource == resource for id in loan.ids)",
        "        return frozenset()",
    ),
)
"""Of device plugins on machines with agents."""

OF_AUTOSCALER = (
    Mutant(
        "a node that has not published everything counts as what it is",
        f"{AUTOSCALER}/deciding.py",
        "    for arriving in memory.arriving:",
        "    for arriving in ():",
    ),
    Mutant(
        "one node more is asked for than is needed",
        f"{AUTOSCALER}/loop.py",
        "wanted = group.size + self._memory.coming(group.name) + count",
        "wanted = group.size + self._memory.coming(group.name) + count + 1",
    ),
    Mutant(
        "nodes are added while there is room on others",
        f"{AUTOSCALER}/deciding.py",
        "more = grow(simulation, waiting, sized, view.hosts, coming)",
        "more = grow(simulation, waiting, sized, lambda pod: (), coming)",
    ),
    Mutant(
        "a group grows beyond its bound",
        f"{AUTOSCALER}/groups.py",
        "return 0 if self.closed else max(0, self.most - self.size)",
        "return 0 if self.closed else self.most",
    ),
    Mutant(
        "nobody asks again whether a pod has come to a node before it goes",
        f"{AUTOSCALER}/loop.py",
        "        if await self._is_used(node.name):\n",
        "        if False:\n",
    ),
    Mutant(
        "nodes go whose pods find no other place",
        f"{AUTOSCALER}/shrinking.py",
        """            return f"pod {pod.key} would find no other place"
""",
        """            continue
""",
    ),
    Mutant(
        "nodes go with pods that nobody makes anew",
        f"{AUTOSCALER}/shrinking.py",
        "if not comes_back(pod) and not defrag.may_be_lost(pod):",
        "if False:",
    ),
    Mutant(
        "a template that promised too much is relied on again",
        f"{AUTOSCALER}/memory.py",
        "                    self.broken[one.group] = promise(one.template)\n",
        "                    pass\n",
    ),
    Mutant(
        "who leads next does not know which templates promised too much",
        f"{AUTOSCALER}/loop.py",
        "self._memory.broken.update(await self._data(BROKEN))",
        "await self._data(BROKEN)",
    ),
    Mutant(
        "nobody is told that a template promised too much",
        f"{AUTOSCALER}/loop.py",
        'self._events.record(late.node, WARNING, "TemplateBroken", words)',
        "pass",
    ),
    Mutant(
        "needless nodes stay",
        f"{AUTOSCALER}/deciding.py",
        "        mark = self._due(now_s, len(leaving))\n",
        "        mark = ()\n",
    ),
    Mutant(
        "nodes that were emptied stay",
        f"{AUTOSCALER}/deciding.py",
        "            remove.append(name)\n",
        "            pass\n",
    ),
    Mutant(
        "a provider that failed once is not asked again",
        f"{AUTOSCALER}/memory.py",
        "self._waits[group] = (now_s + self._patience.backoff_s, why)",
        "self._waits[group] = (now_s + 1e9, why)",
    ),
    Mutant(
        "a node that does not come is waited for for ever",
        f"{AUTOSCALER}/memory.py",
        """            if now_s - one.since_s >= one.patience_s:
                self._asked.remove(one)""",
        """            if False:
                self._asked.remove(one)""",
    ),
    Mutant(
        "an autoscaler ends when the server does not answer at its start",
        f"{AUTOSCALER}/loop.py",
        """                log.warning("the autoscaler cannot begin yet: %s", refused)
""",
        """                raise
""",
    ),
)

MUTANTS = (
    Mutant(
        "a node prepares before it has said so",
        f"{NODE}/plan.py",
        "if state.lacking or (state.needs and not state.is_listed):",
        "if state.lacking:",
    ),
    Mutant(
        "a node starts what the cache says, and asks nobody",
        f"{NODE}/claims.py",
        "    if not is_reserved:",
        "    if False:",
    ),
    Mutant(
        "a node never takes a claim off its list",
        f"{NODE}/pod_loop.py",
        "self.prepared.release(life.node, life.pod.uid)",
        "pass",
    ),
    Mutant(
        "a node forgets pods that were deleted by force",
        f"{NODE}/pod_loop.py",
        "if life.state.is_there or life.state.held:",
        "if False:",
    ),
    Mutant(
        "a node lets deleted pods lie",
        f"{NODE}/plan.py",
        "return Delete() if is_due and not state.is_gone else Rest()",
        "return Rest()",
    ),
    Mutant(
        "a pod that was given up on with its node is never ready again",
        f"{NODE}/plan.py",
        " or state.is_doubted)",
        ")",
    ),
    Mutant(
        "the last reservation goes and the allocation stays",
        f"{CLAIMS}/releasing.py",
        'return ReleasePlan({**status, "allocation": None}, True, is_protected, True)',
        "return ReleasePlan(status, True, is_protected, True)",
    ),
    Mutant(
        "the finalizer goes before the allocation",
        f"{CLAIMS}/releasing.py",
        'return ReleasePlan({"allocation": None} if is_allocated else None, is_allocated, True, True)',
        "return ReleasePlan(None, False, True, True)",
    ),
    Mutant(
        "the finalizer never goes",
        f"{CLAIMS}/claim_loop.py",
        "if plan.unprotects:",
        "if False:",
    ),
    Mutant(
        "a running pod loses its reservation",
        f"{CLAIMS}/releasing.py",
        "return Verdict.DROP if pod.is_done else Verdict.KEEP",
        "return Verdict.DROP",
    ),
    Mutant(
        "a cache that does not know a pod is believed",
        f"{CLAIMS}/releasing.py",
        "return Verdict.ASK",
        "return Verdict.DROP",
    ),
    Mutant(
        "the server is asked and not listened to",
        f"{CLAIMS}/claim_loop.py",
        "if live is None or live.metadata.uid != consumer.uid:",
        "if True:",
    ),
    Mutant(
        "every pod is remembered as gone",
        f"{CLAIMS}/memory.py",
        "return uid in self._nodes",
        "return True",
    ),
    Mutant(
        "status is written whatever others wrote meanwhile",
        f"{CLAIMS}/claim_loop.py",
        'return {"uid": claim.uid, "resourceVersion": claim.resource_version}',
        'return {"uid": claim.uid}',
    ),
    Mutant(
        "claims of finished pods stay",
        f"{CLAIMS}/claim_loop.py",
        "if plan.is_unreserved:",
        "if False:",
    ),
    Mutant(
        "a claim that was made twice stays twice",
        f"{CLAIMS}/claim_loop.py",
        "return pod is not None and self._is_superfluous(view, pod), False",
        "return False, False",
    ),
    Mutant(
        "a finished pod keeps its reservations",
        f"{CLAIMS}/releasing.py",
        "return Verdict.DROP if pod.is_done else Verdict.KEEP",
        "return Verdict.KEEP",
    ),
    Mutant(
        "a pod's end is not looked at",
        f"{CLAIMS}/loop.py",
        """        self._look_at(self._reserved[object.uid])
        self._look_at(self._owned[object.uid])
        for name in pod.claim_names:
            self._loop.add(Item("claim", Key(object.namespace, name)))
""",
        "",
    ),
    Mutant(
        "claims are not recorded in the pod",
        f"{CLAIMS}/pod_loop.py",
        "if fresh and not await self._record(object, pod, fresh):",
        "if False:",
    ),
    Mutant(
        "a claim of somebody else is taken for one's own",
        f"{CLAIMS}/generating.py",
        "if recorded is not None and is_for(claim_of(recorded), pod):",
        "if recorded is not None:",
    ),
    Mutant(
        "what failed is not tried again",
        f"{INFORMERS}/reconciler.py",
        "self.queue.retry(key, self._clock.monotonic_s())",
        "0.0",
    ),
    Mutant(
        "what vanished while nobody watched is still there",
        f"{INFORMERS}/cache.py",
        "if key not in objects:",
        "if False:",
    ),
    Mutant(
        "an owner that is gone is taken for one that is there",
        f"{COLLECTOR}/plan.py",
        "if state in (OwnerState.GONE, OwnerState.WAITING)",
        "if state is OwnerState.WAITING",
    ),
    Mutant(
        "an owner that is there is taken for one that is gone",
        f"{COLLECTOR}/plan.py",
        "if state in (OwnerState.GONE, OwnerState.WAITING)",
        "if state is not OwnerState.WAITING",
    ),
    Mutant(
        "a node's word is not waited for",
        f"{CLAIMS}/released.py",
        "if await self._holds(node, uid) and await self._exists(node):",
        "if False:",
    ),
    Mutant(
        "consumers that are not pods are dropped",
        f"{CLAIMS}/releasing.py",
        "return Verdict.KEEP  # not ours to judge",
        "return Verdict.DROP",
    ),
    Mutant(
        "an addition during work is lost",
        f"{INFORMERS}/workqueue.py",
        """        if key in self._wanted:
            self._due.append(key)
""",
        """        self._wanted.pop(key, None)
""",
    ),
    Mutant(
        "a conflict is not tried again",
        f"{INFORMERS}/reconciler.py",
        "self.queue.retry_conflict(key, self._clock.monotonic_s())",
        "0.0",
    ),
    Mutant(
        "a refresh that is given up leaves no reader",
        f"{INFORMERS}/registry.py",
        """            if what in self._informers and self._group is not None:
                self._start(what, after=task)""",
        "            pass",
    ),
    Mutant(
        "orphans are not set free",
        f"{COLLECTOR}/loop.py",
        "await _each(disown, self.graph.dependents(owner.uid))",
        "await _each(disown, ())",
    ),
    Mutant(
        "an owner does not wait for its dependents",
        f"{COLLECTOR}/loop.py",
        "if not self.graph.blocking(owner.uid):",
        "if True:",
    ),
    Mutant(
        "references to owners that are gone stay",
        f"{COLLECTOR}/plan.py",
        "return Disown(leaving) if leaving else Nothing()",
        "return Nothing()",
    ),
    Mutant(
        "a namespace goes before it is empty",
        f"{CONTROLLERS}/namespaces/loop.py",
        "if found.is_empty:",
        "if True:",
    ),
    Mutant(
        "a namespace is emptied only once",
        f"{CONTROLLERS}/namespaces/loop.py",
        "return Again(pause_s(since_s))",
        "return None",
    ),
    Mutant(
        "a node that the cache does not know is gone",
        f"{CONTROLLERS}/podgc/loop.py",
        "if await self._is_gone(node):",
        "if True:",
    ),
    Mutant(
        "pods of nodes that are gone stay",
        f"{CONTROLLERS}/podgc/plan.py",
        "return Fate.LOST",
        "return Fate.NONE",
    ),
    Mutant(
        "a rollout does not end",
        f"{CONTROLLERS}/deployments/rollout.py",
        "return _shrink(wish, new, [one for one in old if one.replicas], total)",
        "return {}",
    ),
    Mutant(
        "a replica set that has too many pods keeps them",
        f"{CONTROLLERS}/replicasets/plan.py",
        "return ReplicaSetPlan(delete=tuple(deletion_order(active, related)[:count]))",
        "return ReplicaSetPlan()",
    ),
    Mutant(
        "a daemon set that is changed keeps its old pods",
        f"{CONTROLLERS}/daemonsets/plan.py",
        'if here.wish.spec.update_strategy.type == "RollingUpdate":',
        "if False:",
    ),
    Mutant(
        "finished pods are counted again",
        f"{CONTROLLERS}/jobs/counting.py",
        "known = {*noted.succeeded, *noted.failed}",
        "known = set()",
    ),
    Mutant(
        "pods of a job go before they are counted",
        f"{CONTROLLERS}/jobs/loop.py",
        'metadata["finalizers"] = [*(metadata.get("finalizers") or ()), TRACKING]',
        "pass",
    ),
    Mutant(
        "a quota is not charged",
        "src/allot/apiserver/writing/quotas.py",
        "            bill.present_to(found)",
        "            pass",
    ),
    Mutant(
        "what objects used is not given back",
        f"{CONTROLLERS}/quota/loop.py",
        "        self._look_soon(touched)",
        "        pass",
    ),
    Mutant(
        "nobody is told to leave a tainted device",
        f"{CONTROLLERS}/devicetainteviction/pod_loop.py",
        "        await self._evict(pod, eviction)",
        "        pass",
        "real",
    ),
    Mutant(
        "the scheduler does not hear of taints",
        f"{SCHEDULER}/mirror.py",
        "mirror.snapshot.inventory.apply_taint_rule(change.object.view(resource.DeviceTaintRule))",
        "pass",
        "real",
    ),
    Mutant(
        "a taint counts when it is gone",
        f"{SCHEDULER}/mirror.py",
        "mirror.snapshot.inventory.remove_taint_rule(object.name)",
        "pass",
        "real",
    ),
    Mutant(
        "half a pool is taken for the whole",
        "src/allot/allocation/pool.py",
        "return PoolView(self.id, incomplete=True)",
        "pass",
        "real",
    ),
    Mutant(
        "a pod is bound and its claim not reserved",
        f"{SCHEDULER}/binding.py",
        "reserved, is_ours = await self.claims.reserve(pod, claim)",
        "reserved, is_ours = claim, False",
        "real",
    ),
    Mutant(
        "a pod does not say which claim serves its extended resources",
        f"{SCHEDULER}/binding.py",
        "patch = extended.status_patch(pod.uid, claim.key.name, devices)",
        "return",
        "real",
    ),
    Mutant(
        "who names the claim of another is refused by nobody",
        f"{SCHEDULER}/claim.py",
        'return owner.name if owner is not None and owner.uid != pod_uid else ""',
        'return ""',
        "real",
    ),
    Mutant(
        "a claim for extended resources goes whoever else uses it",
        f"{SCHEDULER}/claiming.py",
        "if others := known.users_besides(pod.uid):",
        "if others := ():",
        "real",
    ),
    Mutant(
        "giving back ends while a write of it may still arrive",
        f"{SCHEDULER}/claiming.py",
        "if is_unsure and gives_back:  # BIND6",
        "if False:",
        "real",
    ),
    Mutant(
        "a pod that waits is not told why",
        f"{SCHEDULER}/explaining.py",
        "self._say(outcome.state.pod, UNSCHEDULABLE, outcome, BLINK_S)",
        "pass",
        "real",
    ),
    *(replace(mutant, scheduler="real", agents=True) for mutant in ON_MACHINES),
    *(replace(mutant, scheduler="real", agents=True) for mutant in OF_CAPACITY),
    *(replace(mutant, scheduler="real", classic=True) for mutant in OF_CLASSIC),
    *(replace(mutant, scheduler="real", numeric=True) for mutant in OF_NUMERIC),
    *(replace(mutant, scheduler="real", agents=True, classic=True) for mutant in OF_CLASSIC_ON_MACHINES),
    *(replace(mutant, scheduler="real", compute=True) for mutant in OF_COMPUTE),
    *(replace(mutant, scheduler="real", agents=True, compute=True) for mutant in OF_CARDS),
    *(replace(mutant, scheduler="real", autoscaler=True) for mutant in OF_AUTOSCALER),
)

HEALTHY = Mutant(
    "",
    "",
    "",
    "",
    scheduler="real",
    agents=True,
    classic=True,
    compute=True,
    numeric=True,
    autoscaler=True,
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="only mutants whose name contains one of these")
    parser.add_argument("--seeds", type=int, default=200, help="try at most so many for each (default: 200)")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at the same time (default: 2)")
    parser.add_argument("--json", type=Path, help="write the table to this file as well")
    options = parser.parse_args()
    wanted = [m for m in MUTANTS if not options.names or any(name in m.name for name in options.names)]
    began_s = time.monotonic()
    found: list[Found] = []
    with (
        tempfile.TemporaryDirectory(prefix="sim-mutants-") as folder,
        ThreadPoolExecutor(options.jobs) as pool,
    ):
        original = Path(folder)
        shutil.copytree(ROOT / "src", original / "src", ignore=shutil.ignore_patterns("__pycache__"))
        if (healthy := run(original, SANE_SEEDS, HEALTHY)).said != NOTHING:
            print(f"the tree fails without a mutant: {healthy.said}")
            return 1
        for one in pool.map(lambda mutant: hunt(original, mutant, options.seeds), wanted):
            found.append(one)
            shown = f"seed {one.seed}" if one.seed else "SURVIVED"
            print(f"{shown:>9}  {one.mutant}: {one.said}", flush=True)
    survived = sum(not one.seed for one in found)
    print(f"{len(found) - survived} of {len(found)} found in {time.monotonic() - began_s:.0f} s")
    if options.json is not None:
        write(options.json, found, options.seeds)
    return 1 if survived else 0


@dataclass(frozen=True)
class Found:
    mutant: str
    seed: int | None
    said: str


def hunt(original: Path, mutant: Mutant, seeds: int) -> Found:
    """The first seed that finds the mutant, and what it says."""
    with tempfile.TemporaryDirectory(prefix="mutant-", dir=original) as folder:
        shutil.copytree(original / "src", Path(folder) / "src")
        path = Path(folder) / mutant.file
        text = path.read_text()
        if mutant.old not in text:
            return Found(mutant.name, None, "its text is no longer in the file")
        path.write_text(text.replace(mutant.old, mutant.new))
        return replace(run(Path(folder), seeds, mutant), mutant=mutant.name)


def run(folder: Path, seeds: int, mutant: Mutant) -> Found:
    result = folder / "result.json"
    is_beside = mutant.classic or mutant.compute or mutant.numeric or mutant.autoscaler
    command = [sys.executable, "-B", "-m", "allot.cli", "sim", "--seeds", f"1-{seeds}"]
    command += [
        "--until-broken",
        "--scheduler",
        mutant.scheduler,
        "--agents",
        str(int(mutant.agents)),
        "--classic",
        str(int(mutant.classic)),
        "--compute",
        str(int(mutant.compute)),
        "--numeric",
        str(int(mutant.numeric)),
        "--autoscaler",
        str(int(mutant.autoscaler)),
        "--pods",
        str(PODS if mutant.agents or not is_beside else PODS_BESIDE),
        "--json",
        str(result),
    ]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if not result.exists():
        return Found("", None, f"the run ended badly: {done.stderr[-300:]}")
    for seed, wrong in json.loads(result.read_text())["broken"].items():
        return Found("", int(seed), wrong[0])
    return Found("", None, NOTHING)


def write(path: Path, found: list[Found], seeds: int) -> None:
    table = [{"mutant": one.mutant, "seed": one.seed, "said": one.said} for one in found]
    result = {
        "mutants": len(found),
        "found": sum(one.seed is not None for one in found),
        "seeds_at_most": seeds,
    }
    path.write_text(json.dumps({**result, "table": table}, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
