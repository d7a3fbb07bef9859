"""Drivers that come with Allot, each written with the kit.

    sim          the devices of a fleet of the catalogue, without hardware, with faults on request

Drivers of what machines have:

    nvidia       NVIDIA's GPUs, whole or in partitions; also from a recording
    loop         block devices on files
    net          network interfaces, moved into pods
    cpu          cores by NUMA node and cache, for one claim each
    pcie         where devices hang, for all of them
    finding      which of these find something on this machine

Drivers of classic claims (KEP-3063), with a half in the control plane and one on each node:

    mock         parameters become environment variables: for tests, and the shortest to read
    gpu_memory   parts of GPUs, by memory; optional where the user says so
    fabric       accelerators that are attached to nodes over a network
    fpga         cards with several functions that are set up together; immediate allocation
"""

from . import cpu, fabric, finding, fpga, gpu_memory, loop, mock, net, nvidia, sim

__all__ = ["cpu", "fabric", "finding", "fpga", "gpu_memory", "loop", "mock", "net", "nvidia", "sim"]
