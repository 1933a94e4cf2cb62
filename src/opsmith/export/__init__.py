"""What can be taken away from a run. A library of its operators, its experiences as data, and its verdicts anew.

`solved` reads operators from the store and has them judged once more; `library`, `manifest` and `folder` make a package
of them; `examples`, `dataset` and `card` make data sets for training; `reverify` judges an old run again.
"""
