"""Why is it that fast? Profilers look at a right program, and say it in texts whose every figure is explained, or in
pictures."""
