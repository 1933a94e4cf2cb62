"""Bridges to systems that use Opsmith or watch it: a module for each, and none is imported unless it is asked for.

`inspect_task`: a task of Inspect AI. `prime_verifiers`: an environment of PrimeIntellect's `verifiers`. `trackers`:
where `opsmith run --track NAME` logs a run. Each needs its own extra of the package and nothing of another.
"""
