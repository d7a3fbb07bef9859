"""The same cluster in a made-up world: virtual time, faults, checkers.

    loop       an event loop whose time is made up
"""
