"""`delta.exceptions.captured`."""

from .base import *  # noqa: F403
from .base import __all__  # noqa: F401
