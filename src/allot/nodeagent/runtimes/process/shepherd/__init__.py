"""Looks after containers that are processes, and outlives the agent that asks for them: a program of its own.

    main        the program: one for each directory
    loop        hears agents, containers and the system; decides nothing
    container   one attempt from its start to its record
    words       what is said to it and by it, cut to what there is room for
    starting    how the first process of a container comes to be, with or without a helper
    first       the first process inside: it makes the container's world, and then becomes its command
    world       what a container sees: its own /dev and /proc, its mounts, the machine's files
    devices     the nodes under /dev
    entering    a command in a container that runs, and a connection to a port of its network
    sandbox     the namespaces that the containers of a pod share
    cgroups     limits and device rules, as far as the machine delegates them; devicerules for cgroup v2
    hooks       programs that CDI devices want to have run
    abilities   what of all this the machine allows
    logs        what containers print
    records     what lies on disk, and what a shepherd finds that comes after one that was killed
    processes   what the system knows of processes
    kernel      system calls that Python does not have

    DIRECTORY/shepherd.sock                            one JSON object a line, both ways; with open files
    DIRECTORY/shepherd.lock                            its pid; held while it lives: there is one
    DIRECTORY/abilities.json                           what containers can be kept from
    DIRECTORY/cgroups.json                             where it makes cgroups
    DIRECTORY/POD/CONTAINER/NUMBER/starting.json       pid, when the process began by the kernel, which boot
    DIRECTORY/POD/CONTAINER/NUMBER/started.json        the same, once it may run
    DIRECTORY/POD/CONTAINER/NUMBER/ended.json          exit code, when, why
    DIRECTORY/POD/CONTAINER/NUMBER/output.log          and output.log.N: what came before
    DIRECTORY/POD/CONTAINER/NUMBER/config.json         for hooks
    DIRECTORY/POD/CONTAINER/NUMBER/root                where its files are put together; empty from outside

What it promises
    HERD1  `started.json` is there before the container's command runs, `ended.json` before any agent is told
           that it has ended. Each appears whole or not at all.
    HERD2  What a container started is gone when it has ended: with the namespace of its processes, or, where
           it has none, because its first process adopts what is left below it and kills it.
    HERD3  After a shepherd that was killed, or a reboot, the next one ends what is left and says so with exit
           code 137: nobody saw how it ended. No process, mount, namespace or cgroup stays.
    HERD4  A full disk costs output and new containers, not the shepherd or those that run. The end of one is
           written into room that was taken when it began, or as soon as there is room.

It is run by itself and imports nothing but the standard library: it is there once on every node. Namespaces
are held by processes and open files and by nothing else, so that none is left when these have gone.
"""
