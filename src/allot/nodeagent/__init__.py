"""The agent of a node: real containers, and devices that drivers prepare.

told           what drivers were told of each claim: the rules, as values
checkpoint     the same as a file; keeping keeps it
preparing      tells the drivers, in the order that a crash cannot spoil
giving         which devices each container gets
drivers        which drivers are there, and which instance of each is called
registry_loop  follows the registration directory
wiping         whose slices have to go
views          what is read of a pod
"""
