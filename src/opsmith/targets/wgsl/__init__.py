"""WGSL: kernels of WebGPU behind a launch plan, run on the software driver of this machine (`target`)."""
