"""The evaluation of the paper, and what goes beyond it: experiment files, their runs, and what came of them."""
