"""The package name `delta`: `served` has its modules, `start` enables sessions that name Delta."""
