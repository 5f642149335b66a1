//! How deep expressions and plans nest, told from tokens: chains such as `a + b + c` nest to the left, one level an
//! operator, and so do tables of FROM and queries of WITH; whatever walks them by recursion, or drops them, needs as much
//! stack.

use super::DEPTH_MAX;
use crate::{Error, Result};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Chains beyond this are refused.
const OPERATORS_MAX: usize = 1000;

/// Tables and queries of WITH beyond this are refused.
const RELATIONS_MAX: usize = 500;

/// Open parentheses, brackets of types and CASEs beyond this are refused. The parser refuses sooner, but not everywhere.
const LEVELS_MAX: usize = 2 * DEPTH_MAX;

/// What opened a level.
#[derive(Clone, Copy, PartialEq)]
enum Opener {
    Statement,
    Parenthesis,
    /// `<` behind STRUCT, ARRAY or MAP.
    Type,
    Case,
}

/// What was met at one level.
#[derive(Clone, Copy)]
struct Level {
    opener: Opener,
    set_operators: usize,
    /// Queries of WITH.
    queries: usize,
    /// Tables behind the first one of FROM, since the last set operator, and the most of them before it.
    tables: usize,
    tables_max: usize,
    /// What follows a comma is a table.
    is_in_from: bool,
    logical: usize,
    /// Other operators since the last logical one, and the most of them so far.
    others: usize,
    others_max: usize,
}

impl Level {
    fn new(opener: Opener) -> Level {
        Level {
            opener,
            set_operators: 0,
            queries: 0,
            tables: 0,
            tables_max: 0,
            is_in_from: false,
            logical: 0,
            others: 0,
            others_max: 0,
        }
    }

    fn relations(&self) -> usize {
        self.queries + self.tables.max(self.tables_max)
    }

    fn depth(&self) -> usize {
        self.set_operators + self.relations() + self.logical + self.others_max
    }

    /// A new expression begins.
    fn restart(&mut self) {
        *self = Level { logical: 0, others: 0, others_max: 0, ..*self };
    }

    fn operator(&mut self) {
        self.others += 1;
        self.others_max = self.others_max.max(self.others);
    }
}

/// The levels that are open, outermost first; never empty.
struct Levels {
    open: Vec<Level>,
    /// Depth of all but the innermost.
    outer_depth: usize,
}

impl Levels {
    fn new() -> Levels {
        Levels { open: vec![Level::new(Opener::Statement)], outer_depth: 0 }
    }

    fn innermost(&mut self) -> &mut Level {
        self.open.last_mut().expect("one level is always open")
    }

    fn depth(&self) -> usize {
        self.outer_depth + self.open.last().map_or(0, Level::depth)
    }

    fn open(&mut self, opener: Opener) {
        self.outer_depth = self.depth();
        self.open.push(Level::new(opener));
    }

    /// Closes the innermost level where `opener` opened it.
    fn close(&mut self, opener: Opener) -> bool {
        let closes = self.open.last().is_some_and(|level| level.opener == opener) && self.open.len() > 1;
        if closes {
            self.open.pop();
            self.outer_depth -= self.open.last().map_or(0, Level::depth);
        }
        closes
    }
}

/// Per statement that is not empty, a bound on how deep its expressions nest.
///
/// # Errors
/// [`Error::Sql`] where one nests too deep to be planned.
pub(super) fn of_statements(tokens: &[TokenWithSpan]) -> Result<Vec<usize>> {
    let mut depths = Vec::new();
    let mut levels = Levels::new();
    let mut deepest = 0;
    let mut is_empty = true;
    let (mut names_type, mut is_named, mut is_distinct) = (false, false, false);
    for TokenWithSpan { token, span } in tokens {
        let behind_type_name = std::mem::take(&mut names_type);
        let behind_as = std::mem::take(&mut is_named);
        let behind_distinct = std::mem::take(&mut is_distinct);
        match token {
            Token::Whitespace(_) => {
                (names_type, is_named, is_distinct) = (behind_type_name, behind_as, behind_distinct);
                continue;
            }
            Token::SemiColon | Token::EOF => {
                if !is_empty {
                    depths.push(deepest);
                }
                (levels, deepest, is_empty) = (Levels::new(), 0, true);
                continue;
            }
            Token::Comma => {
                let level = levels.innermost();
                level.restart();
                level.tables += usize::from(level.is_in_from);
            }
            Token::LParen => {
                levels.innermost().queries += usize::from(behind_as);
                levels.open(Opener::Parenthesis);
            }
            Token::RParen => {
                // What is still open inside was not closed as it should be; the parser will say so.
                while levels.close(Opener::Type) || levels.close(Opener::Case) {}
                levels.close(Opener::Parenthesis);
            }
            Token::Lt if behind_type_name => levels.open(Opener::Type),
            Token::Gt if levels.close(Opener::Type) => {}
            Token::ShiftRight if levels.close(Opener::Type) => {
                levels.close(Opener::Type);
            }
            Token::Word(word) if word.quote_style.is_none() => match word.keyword {
                Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT => {
                    let level = levels.innermost();
                    level.set_operators += 1;
                    (level.tables, level.tables_max) = (0, level.tables.max(level.tables_max));
                }
                Keyword::FROM if behind_distinct => levels.innermost().operator(),
                Keyword::DISTINCT => is_distinct = true,
                Keyword::AND | Keyword::OR | Keyword::XOR => {
                    let level = levels.innermost();
                    level.logical += 1;
                    level.others = 0;
                }
                Keyword::IS
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::SIMILAR
                | Keyword::RLIKE
                | Keyword::REGEXP
                | Keyword::BETWEEN
                | Keyword::IN
                | Keyword::AT
                | Keyword::DIV
                | Keyword::OVERLAPS
                | Keyword::MEMBER
                | Keyword::MATCH
                | Keyword::OPERATOR
                | Keyword::NOTNULL
                | Keyword::COLLATE => levels.innermost().operator(),
                Keyword::CASE => levels.open(Opener::Case),
                Keyword::END => {
                    levels.close(Opener::Case);
                }
                Keyword::STRUCT | Keyword::ARRAY | Keyword::MAP => names_type = true,
                Keyword::WHEN | Keyword::THEN | Keyword::ELSE if levels.innermost().opener == Opener::Case => {
                    levels.innermost().restart();
                }
                Keyword::SELECT | Keyword::FROM | Keyword::WHERE | Keyword::ON | Keyword::HAVING | Keyword::BY => {
                    let level = levels.innermost();
                    level.restart();
                    level.is_in_from = word.keyword == Keyword::FROM || level.is_in_from && word.keyword == Keyword::ON;
                }
                Keyword::JOIN => {
                    let level = levels.innermost();
                    level.restart();
                    level.tables += 1;
                }
                Keyword::AS => is_named = true,
                _ => {}
            },
            Token::Word(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::Period
            | Token::Placeholder(_)
            | Token::RBracket => {}
            _ => levels.innermost().operator(),
        }
        is_empty = false;
        deepest = deepest.max(levels.depth());
        let at = span.start;
        if levels.open.len() > LEVELS_MAX {
            return Err(Error::Sql(format!(
                "the statement nests deeper than {LEVELS_MAX} at line {}, column {}; split it with WITH or tables",
                at.line, at.column
            )));
        }
        if levels.innermost().relations() > RELATIONS_MAX {
            return Err(Error::Sql(format!(
                "more than {RELATIONS_MAX} tables or queries of WITH in one query at line {}, column {}; put parts of \
                 it into a table by CREATE TABLE AS",
                at.line, at.column
            )));
        }
        if deepest > OPERATORS_MAX {
            return Err(Error::Sql(format!(
                "an expression of more than {OPERATORS_MAX} operators in a row at line {}, column {}; write \
                 IN (...), or put its parts into a table",
                at.line, at.column
            )));
        }
    }
    if !is_empty {
        depths.push(deepest);
    }
    Ok(depths)
}

#[cfg(test)]
mod tests {
    use crate::parse::parse;

    fn depths(script: &str) -> Vec<usize> {
        parse(script).unwrap().iter().map(|statement| statement.depth).collect()
    }

    #[test]
    fn chains_nest_and_lists_do_not() {
        assert_eq!(depths("SELECT 1; ; SELECT 1 + 2 + 3 ;SELECT a, b + 1, c"), [0, 2, 1]);
        assert_eq!(depths("SELECT a = 1 OR a = 2 OR a = 3"), [3]);
        assert_eq!(depths("SELECT 1 + (2 + (3 + 4))"), [3]);
        let rows = vec!["(1 + 2, -3)"; 5000].join(", ");
        assert!(depths(&format!("INSERT INTO t VALUES {rows}"))[0] < 5);
    }

    #[test]
    fn what_no_stack_could_hold_is_refused() {
        let chains = [
            " + 1",
            " OR a",
            " XOR a",
            " = 1",
            " || 'x'",
            "::INT",
            " IS NULL",
            " UNION SELECT 1",
            " AT TIME ZONE 'UTC'",
        ];
        for chain in chains.into_iter().chain([" + CASE WHEN 1 = 1 THEN 1 END"]) {
            let error = parse(&format!("SELECT a{}", chain.repeat(100_000))).unwrap_err().to_string();
            assert!(error.contains("operators in a row"), "{chain}: {error}");
            assert!(parse(&format!("SELECT a{}", chain.repeat(900))).is_ok(), "{chain}");
        }
        for chain in [", t", " JOIN t USING (a)", " CROSS JOIN (SELECT 1 + 1, 2) AS s"] {
            let error = parse(&format!("SELECT a, b FROM t{}", chain.repeat(100_000))).unwrap_err().to_string();
            assert!(error.contains("tables or queries"), "{chain}: {error}");
            assert!(parse(&format!("SELECT a, b FROM t{}", chain.repeat(400))).is_ok(), "{chain}");
        }
        let branches = "SELECT a FROM t JOIN u USING (a), v UNION ALL ".repeat(600);
        assert!(parse(&format!("{branches} SELECT 1")).is_ok());
        let pairs = "a IS DISTINCT FROM b, ".repeat(600);
        assert!(depths(&format!("SELECT {pairs} 1 FROM t"))[0] < 5);
        let queries = "q AS (SELECT 1), ".repeat(100_000);
        assert!(parse(&format!("WITH {queries} r AS (SELECT 2) SELECT 3")).unwrap_err().to_string().contains("WITH"));
        let columns = "CAST(a AS INT) AS b, ".repeat(2000);
        assert!(depths(&format!("SELECT {columns} 1 FROM t"))[0] < 5);
        for opening in ["Nullable(", "STRUCT(x INT, a ", "STRUCT<x INT, a ", "ARRAY<", "(", "f("] {
            let error = parse(&format!("SELECT CAST(1 AS {}", opening.repeat(100_000))).unwrap_err().to_string();
            assert!(error.contains("nests deeper"), "{opening}: {error}");
        }
        let wide = "a STRUCT<x INT, y ARRAY<INT>>, ".repeat(2000);
        assert!(parse(&format!("CREATE TABLE t ({wide} z INT)")).is_ok());
    }
}
