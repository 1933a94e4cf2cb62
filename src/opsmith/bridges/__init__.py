"""How do other systems use Opsmith, or watch it? One module for each; none of them is imported unless it is asked for.

`inspect_task`: a task of Inspect AI. `prime_verifiers`: an environment of PrimeIntellect's `verifiers`.
`trackers`: where `opsmith run --track NAME` logs a run. Each needs its own extra of the package and nothing of another.
"""
