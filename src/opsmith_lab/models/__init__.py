"""Chat models that are no language models: programs that propose programs, and a program that joins them."""
