"""The variables of the environment that a process with code of others is given: those of a list, and no secret.
Agents of the user's own on the command line have a list to themselves.

What a variable holds cannot be told from its name (`GH_PAT`, `SLACK_WEBHOOK`), so that all others stay with us. Who has
code that needs more, a target of his own for instance, names it: `OPSMITH_WORKER_ENV=CUDA_HOME,MY_TOOLS`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping

NAMED_BY_USER = "OPSMITH_WORKER_ENV"

_LISTED = frozenset({
    "PATH",  # where a target finds its tools
    "HOME",  # packages ask for it on import; without it they would read /etc/passwd, which no worker can
    "TMPDIR",  # Python looks once for a folder to write to, before anything is confined
    "TZ", "LANG",  # as in the caller's process, like LC_*
    "LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_LIBRARY_PATH",  # what Python and torch are linked with
    "ATEN_CPU_CAPABILITY",  # which of its kernels torch takes
})  # fmt: skip
_FAMILIES = (
    "LC_",
    "PYTHON",  # Python's own
    "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "DNNL_", "ONEDNN_",  # threads and kernels of its libraries
    "TORCH", "PYTORCH_",
)  # fmt: skip
_OF_AGENTS = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TZ",
    "TMPDIR",  # which is in a folder of the request's
    "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR",  # where logins lie
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
})  # fmt: skip
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_LOGIN = re.compile(r"://[^/\s@:]*+:[^\s@]*+@|[?&]password=", re.IGNORECASE)


def worker_environment() -> dict[str, str]:
    """The environment of a new Python process that runs code of others: with our import path, and what it may know."""
    return select_variables(os.environ) | {"PYTHONPATH": os.pathsep.join(sys.path)}


def select_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """What such a process may know of an environment.

    >>> select_variables({"PATH": "/bin", "GH_PAT": "x", "TORCH_TOKEN": "x", "A": "1", "OPSMITH_WORKER_ENV": "A"})
    {'PATH': '/bin', 'A': '1'}
    """
    named = set(environ.get(NAMED_BY_USER, "").replace(",", " ").split())
    listed = {name: value for name, value in environ.items() if name in _LISTED or name.startswith(_FAMILIES)}
    named |= listed.keys() - _secret_names(listed)
    return {name: value for name, value in environ.items() if name in named}


def select_agent_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """What an agent of the user's own is told beside the variables that he names: enough to find itself, no key.

    >>> select_agent_variables({"PATH": "/bin", "LC_ALL": "C", "OPENAI_API_KEY": "x", "OPSMITH_STORE": "x"})
    {'PATH': '/bin', 'LC_ALL': 'C'}
    """
    return {name: value for name, value in environ.items() if name in _OF_AGENTS or name.startswith("LC_")}


def _secret_names(environ: Mapping[str, str]) -> set[str]:
    """Those named like keys, and addresses with a password."""
    return {name for name, value in environ.items() if _SECRET_NAME.search(name) or _LOGIN.search(value)}
