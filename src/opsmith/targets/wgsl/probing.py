"""Where programs in WGSL can be judged here: the adapters that WebGPU finds. None is timed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from opsmith.records import printable
from opsmith.targets.probed import JUDGED, ProbedDevice
from opsmith.targets.wgsl.webgpu import NO_PACKAGE

_NO_ADAPTER = "no adapter; try: install a Vulkan driver, such as Debian's mesa-vulkan-drivers and libvulkan1"


def probe_judged() -> Iterator[ProbedDevice]:
    try:
        import wgpu  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        yield ProbedDevice("wgpu", "", lacks=(NO_PACKAGE,))
        return
    adapters = [_read_adapter(dict(adapter.info)) for adapter in wgpu.gpu.enumerate_adapters_sync()]
    if not adapters:
        yield ProbedDevice("wgpu", "", lacks=(_NO_ADAPTER,))
    yield from {device.device: device for device in reversed(adapters)}.values()


def _read_adapter(adapter: Mapping[str, Any]) -> ProbedDevice:
    """Adapters of one name are one device, by the first of its drivers: Vulkan before OpenGL."""
    words = {key: printable(str(value)) for key, value in adapter.items()}
    name = words.get("device") or words.get("description") or "unnamed"
    driver = f"{words.get('backend_type', '')} {words.get('description', '')}".strip()
    return ProbedDevice(f"wgpu:{name.split()[0].rstrip('(,')}", JUDGED, name, words.get("adapter_type", ""), driver)
