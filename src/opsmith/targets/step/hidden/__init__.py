"""Sizes that are drawn for one program: where its graph is another one, and whether it is right there as well.

Data flows one way: `points` (sizes to look at), `bounded` (a check that ends early), `many` (one run of a program's
text at all points), `variants` (which points have which graph), `work` (what a trial would cost), `prepare` (one
trial), `trials` (what is tried).
"""
