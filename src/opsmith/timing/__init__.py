"""Timing where the package need not be: what is measured by which clocks, in the standard library alone."""
