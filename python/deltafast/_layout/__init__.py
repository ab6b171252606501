"""The measurement of a layout, and its picture."""
