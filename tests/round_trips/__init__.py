"""Generated tables and histories, read back by every reader and compared with a model in memory."""
