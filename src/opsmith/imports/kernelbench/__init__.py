"""KernelBench's files, each a `Model` with `get_inputs` and `get_init_inputs`, as problem files."""
