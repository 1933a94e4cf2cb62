"""What knows C: the tuner of its programs."""
