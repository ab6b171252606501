"""The name `deltalake`: `served` has its modules, which bind its names to classes from here and from deltafast."""
