"""Making it so: one folder a controller, and every folder has the same shape.

    resourceclaims/       claims from templates, reservations, deallocation
    garbagecollection/    what nobody owns any more
    namespaces/           the end of a namespace
    serviceaccounts/      the default account of each namespace
    rootcertificates/     whom pods may trust, told in each namespace
    devicetainteviction/  pods leave devices that are tainted
    disruption/           how many pods of a group may still be away
    cronjobs/             a job whenever it is time
    daemonsets/           one pod on every node that suits
    finishedjobs/         jobs that have ended, and whose time is up
    deployments/          the pods of one template take the place of another's
    jobs/                 pods that run until enough of them have succeeded
    nodelifecycle/        nodes that fall silent, and their pods
    podgc/                pods that nobody will end
    poolstatus/           how the pools of a driver stand, once somebody asks (alpha, off)
    quota/                what a namespace uses of what it may
    statefulsets/         pods that have names of their own, and keep them
    replicasets/          so many pods of one template; workloads/: what such controllers share

The shape, so that whoever knows one knows them all (`resourceclaims` is the model):

    x/__init__.py   one page: what it does, what it promises, and CONTROLLER
    x/views.py      the few fields it reads of kinds that others own, typed
    x/plan.py ...   what should be: pure functions over values, tested without await
    x/loop.py       what awaits: reads caches, asks the plan, writes; y_loop.py where there are several

A controller is a value (`Controller`): its name, the service account whose rights it
acts with, the resources it follows, and `make`, which is handed a `World` and returns
the loops to run. `make` registers handlers that turn changes into keys; a loop
reconciles one key at a time, level-based: it reads the caches, asks the plan, writes
with preconditions. A Conflict sends the key back; so does every other refusal, later.

    def make(world: World) -> Sequence[Loop]:
        pods = world.informer(PODS)
        loop = Reconciler("x", X(world, pods).reconcile, world.clock, world.telemetry)
        world.on(pods, lambda change: loop.add(Key.of(change.object)))
        return [loop]

Rules that all of them keep
    * Writes name the uid, and the version where it matters, of what they were decided
      on. Nothing is PUT from a typed view: patch, apply, or `object.changed(...)`.
    * A cache may be old (`informers.reflector`, REFL1). Before harm is done on the word of
      a cache that something does not exist, the server is asked.
    * No handler awaits; no plan reads a clock. Work follows what changed.
    * Two copies are safe: `run` works only while it leads, on caches read anew.

To add one: make the folder, give it a role (the API server's bootstrap roles have one
for each of upstream's names), and add its CONTROLLER to ALL below.
"""

from . import (
    cronjobs,
    daemonsets,
    deployments,
    devicetainteviction,
    disruption,
    finishedjobs,
    garbagecollection,
    jobs,
    namespaces,
    nodelifecycle,
    podgc,
    poolstatus,
    quota,
    replicasets,
    resourceclaims,
    rootcertificates,
    serviceaccounts,
    statefulsets,
)
from .accounts import AccountClients
from .controller import Controller, Loop, World
from .running import Process, run

ALL: tuple[Controller, ...] = (
    resourceclaims.CONTROLLER,
    devicetainteviction.CONTROLLER,
    garbagecollection.CONTROLLER,
    namespaces.CONTROLLER,
    serviceaccounts.CONTROLLER,
    rootcertificates.CONTROLLER,
    deployments.CONTROLLER,
    replicasets.CONTROLLER,
    daemonsets.CONTROLLER,
    statefulsets.CONTROLLER,
    jobs.CONTROLLER,
    cronjobs.CONTROLLER,
    finishedjobs.CONTROLLER,
    podgc.CONTROLLER,
    disruption.CONTROLLER,
    nodelifecycle.CONTROLLER,
    poolstatus.CONTROLLER,
    quota.CONTROLLER,
)
"""What `allot controllers` runs."""

__all__ = ["ALL", "AccountClients", "Controller", "Loop", "Process", "World", "resourceclaims", "run"]
