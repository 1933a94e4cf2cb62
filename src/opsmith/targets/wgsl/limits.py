"""What every device of WebGPU takes: the limits that programs are held to, wherever they run."""

from opsmith.targets.gpu.resolving import DeviceLimits

LIMITS = DeviceLimits(threads=256, block=(256, 256, 64), grid=(65535, 65535, 65535))
WORKGROUP_BYTES = 16384  # of workgroup memory
