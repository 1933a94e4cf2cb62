"""`opsmith bench` and `opsmith experiment`."""
