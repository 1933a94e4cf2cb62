"""Pages of runs while they go on, made from the store and served on this machine; see `opsmith.ui.serve`."""
