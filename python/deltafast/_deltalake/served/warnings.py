"""`deltalake.warnings`."""

__all__ = ["ExperimentalWarning"]


class ExperimentalWarning(Warning):
    """Never given: what deltafast has is not experimental."""
