"""What knows STeP: its program sampler, and mutants of its programs."""
