"""Does a model search, or does it recite? Black-box optimisation, with instruments that are proved on known minds."""
