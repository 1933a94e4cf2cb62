"""Which variables of the environment are no business of another process? Those named like keys, and addresses with a
password: a proxy's, a database's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_LOGIN = re.compile(r"://[^/\s@:]*+:[^\s@]*+@|[?&]password=", re.IGNORECASE)


def secret_names(environ: Mapping[str, str]) -> frozenset[str]:
    """
    >>> sorted(secret_names({"PATH": "/bin", "A_KEY": "x", "OPSMITH_STORE": "postgresql://me:pw@host/db"}))
    ['A_KEY', 'OPSMITH_STORE']
    """
    return frozenset(name for name, value in environ.items() if _NAME.search(name) or _LOGIN.search(value))
