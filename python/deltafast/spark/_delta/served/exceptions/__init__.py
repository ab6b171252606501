"""`delta.exceptions`."""

from . import captured as captured
from .base import *  # noqa: F403
from .base import __all__
