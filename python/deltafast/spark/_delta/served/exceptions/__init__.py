"""`delta.exceptions`."""

from pyspark.util import is_remote_only

from .base import *  # noqa: F403
from .base import __all__

# PySpark's client for Connect has no Java.
if not is_remote_only():
    from . import captured as captured
