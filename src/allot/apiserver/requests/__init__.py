"""One request: what it says, and what its answer looks like. All verbs use these.

    target      what its path names
    negotiate   which form it has, and which form the client wants
    selectors   label and field selectors: parsed once, asked many times
    call        one request on one resource, with all that is settled before it is carried out
    aside       large requests are worked on in a thread, a few at a time, each user in turn
    render      how stored objects look to a client: whole, as metadata, or as rows of a table
    pieces      long answers leave in pieces
    turns       those who make long answers take turns
    warnings    what an answer warns about, as headers

They look at no stored object besides the one that is handed in.
"""
