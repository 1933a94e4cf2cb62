"""Where artefacts run and are timed: what a device is, what it can do at most, and who may have it for itself."""
