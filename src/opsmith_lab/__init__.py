"""What proposes without a language model, and what measures and repeats: `opsmith` works without this package."""
