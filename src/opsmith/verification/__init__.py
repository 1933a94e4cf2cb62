"""Is this candidate right? `verifier`: a pure function; `pool`: the same in worker processes."""
