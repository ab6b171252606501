"""How a table lies: `measure` gives it as data, `picture` draws that.

>>> from deltafast.layout import measure
>>> measure(deltafast.DeltaTable("/data/events")).files                                             # doctest: +SKIP
"""

from deltafast.layout.measure import Layout, Overlap, Part, Size, State, measure

__all__ = ["Layout", "Overlap", "Part", "Size", "State", "measure"]
