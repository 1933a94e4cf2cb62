"""Programs timed on other machines: packed with a runner, sent or carried there, and what comes back."""
