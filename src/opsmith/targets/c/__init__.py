"""C: what is refused before any compiler sees a program, and its canonical form."""
