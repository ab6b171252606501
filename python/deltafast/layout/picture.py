"""Pictures of a table's layout."""

from deltafast._layout.picture import draw, svg

__all__ = ["draw", "svg"]
