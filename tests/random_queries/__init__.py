"""Random queries, on random tables, answered by SinterDB and by DuckDB: both must answer the same.

    scripts/random-queries 10000 7        # so many queries, from seed 7

A walk through the rooms:

- `kinds`, `values`, `schema`: what columns there are, what is in them, and how a table is laid out;
- `tree`: a query as a tree that can be written as SQL and made smaller;
- `scope`, `expressions`, `relations`, `subqueries`, `aggregates`, `windows`, `queries`: which queries are asked;
- `engines`, `comparison`, `known`: what both answer, and when that is the same;
- `shrinking`: the smallest query and tables that still differ;
- `running`, `report`: many queries on all cores, and what is told of them.

Everything follows from a seed and a number: query 1234 of seed 7 is the same one everywhere, and so are its tables.
Where both engines may rightly answer differently, the query is not asked; the reason stands where it would be written.
"""
