"""Two made-up chips: their manuals, one machine that carries out both, and problems that its manual is needed for."""
