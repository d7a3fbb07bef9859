"""What a path below an object does, besides `status`.

    podverbs     pods/NAME/binding and eviction: bind a pod to a node, evict it
    disruption   whether a pod may be evicted, as its disruption budget stands
    reaching     the way from a pod to the agent of its node
    logs         pods/NAME/log: asked of the node that runs the pod
    inside       exec, attach, port-forward: connections into a pod that runs
    debugging    ephemeral containers: one joins a pod that runs
    hollow       what is answered for pods on nodes without a machine
    scaling      scale: replicas of anything that has them, in one shape
    finalizing   namespaces/NAME/finalize
    minting      serviceaccounts/NAME/token

They stand on the verbs of `reading` and `writing`.
"""
