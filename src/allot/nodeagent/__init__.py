"""The agent of a node: real containers, and devices that drivers prepare.

told        what drivers were told of each claim: the rules, as values
checkpoint  the same on disk
giving      which devices each container gets
views       what is read of a pod
"""
