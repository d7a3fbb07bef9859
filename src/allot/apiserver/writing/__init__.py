"""create, update, patch and delete: from a request to a committed object.

    body         from the bytes of a request to an object in the hub form
    writer       create and update: the path that every write takes
    patching     patch: from the stored object and a patch to the object that is wanted
    applying     server-side apply: a patch that says all that its sender cares about
    ownership    who owns which field: `metadata.managedFields`
    guard        no device is given twice (D1, D2)
    compute_guard  no node gives more of a compute resource than it has (D7)
    claims_of_pods  the claims of a new pod, made with it (WITH1 to WITH3)
    quotas       nobody gets more than the quotas of a namespace allow (Q1)
    deleting     delete: at once, or with the write that removes the last finalizer
    collection   deletecollection: everything that a selector matches, one delete each

Every verb ends in the same commit: what was read is compared in the transaction that writes.
"""
