"""The error of operators that are called where there is no Opsmith: in a package that `opsmith export` made."""


class OperatorError(ValueError):
    """What an operator was given does not fit it, or it failed on it; the message says what would fit."""
