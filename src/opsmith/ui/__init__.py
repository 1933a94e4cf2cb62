"""How are runs looked at while they go on? Pages from the store, served on this machine; see `opsmith.ui.serve`."""
