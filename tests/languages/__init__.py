"""What languages need beyond Python: compilers, simulators. Minutes; run by `make languages`, not by `make test`."""
