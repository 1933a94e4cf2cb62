"""Every `opsmith bench`: how long things take, and whether verdicts are fooled."""
