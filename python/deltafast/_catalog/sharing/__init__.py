"""Delta Sharing: tables of others, read by a profile file and the name of a table.

Source: the Delta Sharing Protocol (https://github.com/delta-io/delta-sharing/blob/main/PROTOCOL.md).
"""
