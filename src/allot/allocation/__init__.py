"""Which devices a claim gets: values in, a plan or a reason out.

Nothing here knows a client, a clock or a random number. Reading order: `features`
and `node` (what the world is like), `inventory` (what is published), `ledger`
(what is taken), `demand` (what is asked), `question` (one demand put to one
node), `search` (the answer), `policy` (which of many answers), `outline` (the same
for many nodes), `explanation` (why not).

    inventory = Inventory(features)                 # features: Features.of(["AdminAccess", ...])
    inventory.apply(slice)                          # a ResourceSlice; .remove(name) when it goes
    inventory.apply_taint_rule(rule)                # a DeviceTaintRule; .remove_taint_rule(name)

    ledger = Ledger()
    ledger.settle(claim_uid, taken_by(allocation))  # what the server accepted
    ledger.settle(uid, [Taken(DeviceId(driver, pool, name), share="uuid", consumed={"memory": q})])

    demand = read_demand(claims, classes, features) # once per pod signature: Demand | Refused
    answer = allocate(node, inventory, ledger, demand, policy=LEAST_WASTE, budget=BUDGET_STEPS)

`claims` is a sequence of `resource.ResourceClaim`, `classes` a mapping from name to
`resource.DeviceClass`; `Node` is a value of this package (`Node.read(fields)` takes a
v1 Node as a dictionary). `allocate` passes a `Refused` demand through, so the two
calls can be chained without a test in between. The answer is one of

    Plan        a choice of devices; `plan.results(ids)` writes one AllocationResult a
                claim (`ids: allot.base.Ids` makes the share ids)
    NoFit       no choice exists on this node; `explain(Attempt(...), answer)` says why,
                device by device, and what would help
    Refused     the problem itself is wrong (`error`); `node_only` when other nodes may do
    Undecided   the step budget ran out first; never a statement about fitting

`Outlines` are answers for many nodes without the names: whether and how well, worked
out once for nodes in the same situation. Policies: `POLICIES[name]`. Inventory and
ledger can be forked (`fork()`): what-if questions pay for what they change.
"""

from .answer import Answer, NoFit, Plan, Refused, Undecided
from .budget import Budget
from .demand import Demand, read_demand
from .explanation import Explanation, Group, RequestReport, explain
from .features import Features
from .inventory import Inventory
from .kind import BadSlice, Device, DeviceId, Kind, PoolId
from .ledger import Hold, Ledger, Overlap, Taken, Usage, taken_by
from .node import BadNodeSelector, Node, selects
from .outline import Outline, Outlines
from .policy import FIRST_FIT, LEAST_WASTE, POLICIES, SPREAD, Candidate, Cost, Policy
from .pool import PoolView
from .problem import BYTES_MAX as PROBLEM_BYTES_MAX
from .problem import NotAProblem, Problem, problem_of, read_problem
from .reasons import Reason
from .remedies import Attempt
from .search import BUDGET_STEPS, allocate
from .selected import selected
from .solving import Solved, solve

__all__ = [
    "BUDGET_STEPS",
    "FIRST_FIT",
    "LEAST_WASTE",
    "POLICIES",
    "PROBLEM_BYTES_MAX",
    "SPREAD",
    "Answer",
    "Attempt",
    "BadNodeSelector",
    "BadSlice",
    "Budget",
    "Candidate",
    "Cost",
    "Demand",
    "Device",
    "DeviceId",
    "Explanation",
    "Features",
    "Group",
    "Hold",
    "Inventory",
    "Kind",
    "Ledger",
    "NoFit",
    "Node",
    "NotAProblem",
    "Outline",
    "Outlines",
    "Overlap",
    "Plan",
    "Policy",
    "PoolId",
    "PoolView",
    "Problem",
    "Reason",
    "Refused",
    "RequestReport",
    "Solved",
    "Taken",
    "Undecided",
    "Usage",
    "allocate",
    "explain",
    "problem_of",
    "read_demand",
    "read_problem",
    "selected",
    "selects",
    "solve",
    "taken_by",
]
