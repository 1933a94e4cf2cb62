"""What languages that are compiled and executed share: signature, flags, diagnostics, build cache, one build."""
