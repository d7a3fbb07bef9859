"""How much of the server each client may have, so that nobody is kept out by others.

    strangers   connections that have not shown credentials yet
    shares      requests and bytes of bodies that one user may have at once
    unread      answers that nobody reads
    traffic     the three together, for all listeners of a server

`requests.aside` and `requests.turns` share out what is scarce inside the server: threads and the event loop.
"""
