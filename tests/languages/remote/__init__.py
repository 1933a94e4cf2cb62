"""Programs measured on other machines: a server of ssh on loopback, folders carried by hand, a GPU's driver by a
stand-in. Run by `make languages`."""
