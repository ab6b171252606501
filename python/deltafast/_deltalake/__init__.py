"""The name `deltalake`: `served` has its modules, bound to what stands here and to deltafast's own classes."""
