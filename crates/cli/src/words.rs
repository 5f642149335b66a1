//! Words of the language, for colours and completion.

/// Keywords, in capitals and sorted.
#[rustfmt::skip]
pub(crate) const KEYWORDS: &[&str] = &[
    "ALL", "ALTER", "ANALYZE", "AND", "ANTI", "ANY", "AS", "ASC", "ATTACH", "BACKUP", "BEGIN", "BETWEEN", "BY",
    "CASE", "CAST", "CHECKPOINT", "COLUMN", "COMMIT", "COPY", "CREATE", "CROSS", "CURRENT", "DEFAULT", "DELETE",
    "DESC", "DESCRIBE", "DETACH", "DISTINCT", "DROP", "ELSE", "END", "EXCEPT", "EXISTS", "EXPLAIN", "EXTRACT",
    "FALSE", "FILTER", "FIRST", "FOLLOWING", "FOR", "FROM", "FULL", "GROUP", "GROUPING", "HAVING", "IF", "ILIKE",
    "IN", "INNER", "INSERT", "INTERSECT", "INTERVAL", "INTO", "IS", "JOIN", "KEY", "LAST", "LATERAL", "LEFT", "LIKE",
    "LIMIT", "MEMORY", "NATURAL", "NOT", "NULL", "NULLS", "OFFSET", "ON", "OR", "ORDER", "OUTER", "OVER", "PARTITION",
    "PRECEDING", "PRIMARY", "RANGE", "RECURSIVE", "REPLACE", "RETURNING", "RIGHT", "ROLLBACK", "ROLLUP", "ROW",
    "ROWS", "SAVEPOINT", "SELECT", "SEMI", "SET", "SHOW", "STORAGE", "TABLE", "TABLES", "THEN", "TO", "TRUE",
    "TRUNCATE", "UNBOUNDED", "UNION", "UNIQUE", "UNNEST", "UPDATE", "USING", "VACUUM", "VALUES", "VIEW", "WHEN",
    "WHERE", "WINDOW", "WITH",
];

/// Names of types, in capitals and sorted.
#[rustfmt::skip]
pub(crate) const TYPES: &[&str] = &[
    "BIGINT", "BLOB", "BOOLEAN", "DATE", "DECIMAL", "DOUBLE", "INT", "INTEGER", "REAL", "SMALLINT", "STRUCT", "TIME",
    "TIMESTAMP", "TINYINT", "UUID", "VARCHAR",
];

/// Functions that people use most, sorted.
#[rustfmt::skip]
pub(crate) const FUNCTIONS: &[&str] = &[
    "abs", "avg", "ceil", "coalesce", "concat", "corr", "count", "date_part", "date_trunc", "first_value", "floor",
    "greatest", "lag", "last_value", "lead", "least", "length", "lower", "ltrim", "max", "median", "min", "now",
    "nullif", "rank", "regexp_like", "regexp_replace", "replace", "round", "row_number", "rtrim", "split_part",
    "stddev", "strpos", "substr", "substring", "sum", "trim", "upper", "var_pop",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        assert!(KEYWORDS.is_sorted() && TYPES.is_sorted() && FUNCTIONS.is_sorted());
    }
}
