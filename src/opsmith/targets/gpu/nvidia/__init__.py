"""NVIDIA's GPUs behind their driver: cubins called and timed there, whatever language they were made of."""
