"""Descriptions of machines: what can be read is there, what is missing is None, and the digest names what counts."""

from dataclasses import replace
from pathlib import Path

from opsmith.devices.describe import CpuCache, describe_device

CPUINFO = """processor\t: 0
model name\t: Some CPU @ 2.60GHz
cpu MHz\t\t: 2596.120
flags\t\t: fpu sse4_1 sse4_2 ssse3 popcnt cx16 hypervisor

processor\t: 1
model name\t: Another
"""


def write_machine(root: Path) -> Path:
    texts = {
        "proc/cpuinfo": CPUINFO,
        "proc/meminfo": "MemTotal:       24684092 kB\nMemFree: 1 kB\n",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
        "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "3500000\n",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "2100000\n",
    }
    for number, (level, kind, size, shared) in enumerate([(1, "Data", "48K", "0"), (3, "Unified", "32M", "0-3,8")]):
        folder = f"sys/devices/system/cpu/cpu0/cache/index{number}"
        texts |= {f"{folder}/level": f"{level}", f"{folder}/type": kind, f"{folder}/size": size}
        texts |= {f"{folder}/shared_cpu_list": shared}
    texts["sys/devices/system/cpu/cpu0/cache/index9/level"] = "4"  # the rest of it cannot be read
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_a_machine_is_described_by_what_the_kernel_says(tmp_path: Path) -> None:
    device = describe_device(write_machine(tmp_path))
    assert device.name == "Some CPU @ 2.60GHz"
    assert device.caches == (CpuCache(1, "Data", 48 << 10, 1), CpuCache(3, "Unified", 32 << 20, 5))
    assert (device.memory, device.governor, device.max_mhz, device.mhz) == (24684092 << 10, "performance", 3500, 2100)
    assert device.hypervisor is not None
    assert device.isa == ("x86-64-v2" if device.architecture == "x86_64" else device.isa)


def test_what_cannot_be_read_is_none(tmp_path: Path) -> None:
    device = describe_device(tmp_path)
    assert device.caches == ()
    assert {device.name, device.memory, device.governor, device.max_mhz, device.mhz, device.hypervisor} == {None}
    assert device.cores is not None


def test_this_machine_has_a_name_and_cores() -> None:
    device = describe_device()
    assert device.cores is not None
    assert device.usable_cores is not None
    assert 1 <= device.usable_cores <= device.cores
    assert device.digest == describe_device().digest


def test_the_digest_is_of_the_kind_of_device_and_not_of_the_moment(tmp_path: Path) -> None:
    device = describe_device(write_machine(tmp_path))
    assert replace(device, mhz=1.0, usable_cores=1, compiler=None, memory=1).digest == device.digest
    changes = [{"governor": "powersave"}, {"isa": "x86-64-v4"}, {"caches": ()}, {"max_mhz": 1.0}, {"name": "other"}]
    assert len({device.digest, *(replace(device, **change).digest for change in changes)}) == 1 + len(changes)
