"""The server on its sockets: connections, what they may send, and the process around all of it.

    listener         HTTPS in front of `handle`: who is calling, bounded bodies, streamed answers
    socketlistener   a unix socket in front of `handle`, for components on the same machine
    accepting        connections are taken in, and their handshakes watched
    connection       one HTTPS connection
    arriving         how much a client may send before its request is complete
    sending          answers on their way to the client
    upgrading        connections that stop being HTTP: exec, attach, port-forward
    renewal          keeps the server's certificate from running out
    process          an API server as a process: data directory, store, keys, sockets, kubeconfig

Nothing of the server imports this package: `handle` does not know how a request came in.
"""
