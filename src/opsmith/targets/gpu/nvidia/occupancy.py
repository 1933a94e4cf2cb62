"""Theoretical occupancy: how many warps of a kernel a multiprocessor can hold at once, and what keeps it from more.

By the rules that NVIDIA states for each compute capability (CUDA C++ Programming Guide, technical specifications):
registers are given to a warp in units of 256 and lie in four partitions of a multiprocessor, shared memory to a block
in units of 128 bytes with 1 KiB of the system's beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WARP = 32
_PARTITIONS = 4  # of a multiprocessor: a warp's registers lie in one
_REGISTERS_UNIT = 256  # registers that a warp is given at once
_SHARED_UNIT = 128  # bytes that a block is given at once
_SYSTEM_SHARED = 1024  # bytes of each block that the system takes


@dataclass(frozen=True)
class Multiprocessor:
    """What one holds at most."""

    warps: int
    blocks: int
    shared: int  # bytes
    registers: int = 65536
    barriers: int | None = None  # None: they limit nothing

    @property
    def shared_of_block(self) -> int:
        """Bytes of static and dynamic shared memory that a block may have at most."""
        return self.shared - _SYSTEM_SHARED


ARCHITECTURES: Mapping[str, Multiprocessor] = {
    "sm_80": Multiprocessor(warps=64, blocks=32, shared=164 << 10),
    "sm_86": Multiprocessor(warps=48, blocks=16, shared=100 << 10),
    "sm_89": Multiprocessor(warps=48, blocks=24, shared=100 << 10),
    "sm_90": Multiprocessor(warps=64, blocks=32, shared=228 << 10, barriers=64),
    "sm_100": Multiprocessor(warps=64, blocks=32, shared=228 << 10, barriers=64),
}


@dataclass(frozen=True)
class KernelLoad:
    """What a kernel asks of a multiprocessor."""

    threads: int  # of a block
    registers: int  # of a thread, at most 255
    shared: int  # bytes of a block, static and dynamic
    barriers: int = 0  # of a block: __syncthreads is one


@dataclass(frozen=True)
class Occupancy:
    """How many blocks fit, and which limits let no more in."""

    blocks: int  # 0: the kernel cannot run
    warps: int  # of these blocks
    most_warps: int  # that the multiprocessor holds
    limits: Mapping[str, int]  # blocks that each allows, by what it counts

    @property
    def share(self) -> float:
        """Of the warps that the multiprocessor can hold."""
        return self.warps / self.most_warps

    @property
    def bounds(self) -> list[str]:
        """What allows the least."""
        return [name for name, blocks in self.limits.items() if blocks == self.blocks]


def compute_occupancy(arch: str, load: KernelLoad) -> Occupancy:
    """Of a kernel on an architecture of ARCHITECTURES.

    >>> compute_occupancy("sm_90", KernelLoad(threads=256, registers=64, shared=0)).share
    0.5
    """
    processor = ARCHITECTURES[arch]
    warps = -(-load.threads // WARP)
    limits = {
        "warps": processor.warps // warps,
        "blocks": processor.blocks,
        "registers": _count_by_registers(processor, load, warps),
        "shared memory": _count_by_shared(processor, load),
    }
    if processor.barriers is not None and load.barriers:
        limits["barriers"] = processor.barriers // load.barriers
    blocks = min(limits.values())
    return Occupancy(blocks, blocks * warps, processor.warps, limits)


def _count_by_registers(processor: Multiprocessor, load: KernelLoad, warps: int) -> int:
    if load.registers == 0:
        return processor.blocks
    registers = -(-load.registers * WARP // _REGISTERS_UNIT) * _REGISTERS_UNIT  # of a warp
    per_partition = processor.registers // _PARTITIONS // registers
    fitting = per_partition * _PARTITIONS
    rounded = -(-warps // _PARTITIONS) * _PARTITIONS  # a block is spread over the partitions
    return fitting // warps if rounded * registers <= processor.registers else 0


def _count_by_shared(processor: Multiprocessor, load: KernelLoad) -> int:
    needed = -(-(load.shared + _SYSTEM_SHARED) // _SHARED_UNIT) * _SHARED_UNIT
    return processor.shared // needed if load.shared <= processor.shared_of_block else 0
