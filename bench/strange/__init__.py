"""Valid but strange objects: stored through the API, worked on by every component, and there after a restart.

values     values of the right type, from its edges
sound      a sound object of every kind
mutating   strange objects from sound ones
protobuf   their bytes, as Go's clients send them
asking     what is asked next, by whom, with which verb
world      a whole cluster as a process, and the people
judging    does it still do what a cluster does?
playing    one round; and the shortest list of requests that fails as well
"""
