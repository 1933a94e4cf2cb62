"""Execution: a task's functions and data, the simulator, trials and comparison. Everything here imports torch."""
