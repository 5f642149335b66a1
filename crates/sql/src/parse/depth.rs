//! How deep expressions nest, told from tokens: chains such as `a + b + c` nest to the left, one level an operator, and
//! whatever walks them by recursion, or drops them, needs as much stack.

use crate::{Error, Result};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Chains beyond this are refused.
const OPERATORS_MAX: usize = 1000;

/// What was met at one level of parentheses, whose own number the parser bounds.
#[derive(Clone, Copy, Default)]
struct Level {
    set_operators: usize,
    logical: usize,
    /// Other operators since the last logical one, and the most of them so far.
    others: usize,
    others_max: usize,
}

impl Level {
    fn depth(&self) -> usize {
        self.set_operators + self.logical + self.others_max
    }

    /// A new expression begins.
    fn restart(&mut self) {
        *self = Level { set_operators: self.set_operators, ..Level::default() };
    }
}

/// Per statement that is not empty, a bound on how deep its expressions nest.
///
/// # Errors
/// [`Error::Sql`] where one nests too deep to be planned.
pub(super) fn of_statements(tokens: &[TokenWithSpan]) -> Result<Vec<usize>> {
    let mut depths = Vec::new();
    let mut levels = vec![Level::default()];
    let mut outer_depth = 0;
    let mut deepest = 0;
    let mut is_empty = true;
    for TokenWithSpan { token, span } in tokens {
        let is_nested = levels.len() > 1;
        let level = levels.last_mut().expect("one level is always there");
        match token {
            Token::Whitespace(_) => continue,
            Token::SemiColon | Token::EOF => {
                if !is_empty {
                    depths.push(deepest);
                }
                levels = vec![Level::default()];
                (outer_depth, deepest, is_empty) = (0, 0, true);
                continue;
            }
            Token::Comma => level.restart(),
            Token::LParen => {
                outer_depth += level.depth();
                levels.push(Level::default());
            }
            Token::RParen if is_nested => {
                levels.pop();
                outer_depth -= levels.last().map_or(0, Level::depth);
            }
            Token::Word(word) if word.quote_style.is_none() => match word.keyword {
                Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT => level.set_operators += 1,
                Keyword::AND | Keyword::OR => {
                    level.logical += 1;
                    level.others = 0;
                }
                Keyword::IS | Keyword::LIKE | Keyword::ILIKE | Keyword::BETWEEN | Keyword::IN | Keyword::COLLATE => {
                    level.others += 1;
                    level.others_max = level.others_max.max(level.others);
                }
                Keyword::SELECT
                | Keyword::FROM
                | Keyword::WHERE
                | Keyword::ON
                | Keyword::WHEN
                | Keyword::THEN
                | Keyword::ELSE
                | Keyword::HAVING
                | Keyword::BY => level.restart(),
                _ => {}
            },
            Token::Word(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::Period
            | Token::Placeholder(_)
            | Token::RBracket
            | Token::RParen => {}
            _ => {
                level.others += 1;
                level.others_max = level.others_max.max(level.others);
            }
        }
        is_empty = false;
        deepest = deepest.max(outer_depth + levels.last().map_or(0, Level::depth));
        if deepest > OPERATORS_MAX {
            let at = span.start;
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
        for chain in [" + 1", " OR a", " = 1", " || 'x'", "::INT", " IS NULL", " UNION SELECT 1"] {
            let error = parse(&format!("SELECT a{}", chain.repeat(100_000))).unwrap_err().to_string();
            assert!(error.contains("operators in a row"), "{chain}: {error}");
            assert!(parse(&format!("SELECT a{}", chain.repeat(900))).is_ok(), "{chain}");
        }
    }
}
