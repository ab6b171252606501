"""Writes Delta tables by hand, right ones and wrong ones, for the conformance and hostile suites.

Nothing here uses deltafast: a table that its own writer made would hide a misunderstanding on both sides. `log`
writes commits, checkpoints, compactions and checksums; `dv` deletion vectors; `parquet` and `thrift` Parquet files that
no writer would produce.
"""
