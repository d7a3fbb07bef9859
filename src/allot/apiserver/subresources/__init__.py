"""What a path below an object does, besides `status`.

    podverbs     pods/NAME/binding and eviction: bind a pod to a node, evict it
    disruption   whether a pod may be evicted, as its disruption budget stands
    logs         pods/NAME/log: asked of the node that runs the pod
    inside       exec, attach, port-forward, proxy, ephemeral containers: refused, in words
    scaling      scale: replicas of anything that has them, in one shape
    finalizing   namespaces/NAME/finalize
    minting      serviceaccounts/NAME/token

They stand on the verbs of `reading` and `writing`.
"""
