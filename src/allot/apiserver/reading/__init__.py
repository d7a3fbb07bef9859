"""get, list and watch: what clients see of the objects.

    reader        the three verbs, and which state each of them sees
    listoptions   what the query of a list or a watch asks for
    selection     which objects the client asked for
    listing       a list: from which state, which part of it, and how to ask for the rest
    cache         the current objects of one resource, fed by one watch of the store
    history       what happened to one resource lately, kept once for all who watch it
    watching      a stream of changes for one client
    rights        whether a client may still see what it was allowed to when the watch began

What is read here is what writes are decided on, so writing uses reading and never the other way.
"""
