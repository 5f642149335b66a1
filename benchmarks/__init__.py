"""Benchmarks of SinterDB beside other SQL engines, on the same data in the same run.

`scripts/benchmark tpch --sf 1 --threads 2` makes what is needed and runs; `python -m benchmarks tpch` runs in an
environment that has the wheels of `requirements.txt` and ours.

Each engine lives in a process of its own (`worker`), bound to as many CPUs as it may use threads. The parent (`tpch`)
loads all of them, then takes the queries one by one and lets the engines run it in turn: A B A B. All answers are
compared. What comes out is a JSON file in `record/` and a table.
"""
