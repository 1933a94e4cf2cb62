"""The laboratory's tests, in the folders of its rooms."""
