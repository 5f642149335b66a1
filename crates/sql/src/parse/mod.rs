//! Scripts as statements: ours, which DataFusion's front end refuses, and all others.

mod copy;
mod rewrite;

pub(crate) use copy::{Copy, CopyTarget, FileOption};

use crate::{Error, Result};
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

/// One parsed statement of a script.
#[derive(Clone, Debug)]
pub struct Statement {
    /// As it was written, without the semicolon.
    pub text: String,
    pub(crate) kind: Kind,
}

/// What a statement asks for.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// Everything that the SQL parser knows.
    Sql(Box<ast::Statement>),
    /// `COPY ... FROM` and `COPY ... TO`.
    Copy(Box<Copy>),
    /// `SHOW what [name]`.
    Show(String, Option<ast::ObjectName>),
    /// `DESCRIBE t`.
    Describe(ast::ObjectName),
    /// `SET name = value`.
    Set(String, String),
    /// `CHECKPOINT`.
    Checkpoint,
    /// `VACUUM`.
    Vacuum,
    /// `EXPLAIN [ANALYZE]`.
    Explain { analyze: bool, inner: Box<ast::Statement> },
}

/// The dialect in which all SQL is read.
pub(crate) static DIALECT: GenericDialect = GenericDialect {};

/// Nesting beyond this is refused: no input may exhaust the stack.
const DEPTH_MAX: usize = 100;

/// The statements of a script. Empty statements are passed over.
///
/// # Errors
/// [`Error::Sql`] with line and column.
pub fn parse(script: &str) -> Result<Vec<Statement>> {
    let mut tokens = Tokenizer::new(&DIALECT, script).tokenize_with_location().map_err(|error| {
        Error::Sql(format!("{} at line {}, column {}", error.message, error.location.line, error.location.column))
    })?;
    rewrite::struct_types(&mut tokens);
    let offsets = LineOffsets::new(script);
    let end = tokens
        .iter()
        .rev()
        .find(|token| !matches!(token.token, Token::EOF))
        .map_or(script.len(), |token| offsets.offset(script, token.span.end));
    let mut parser = Parser::new(&DIALECT).with_recursion_limit(DEPTH_MAX).with_tokens_with_locations(tokens);
    let mut statements = Vec::new();
    loop {
        while parser.consume_token(&Token::SemiColon) {}
        let first = parser.peek_token();
        if first.token == Token::EOF {
            return Ok(statements);
        }
        let mut kind = statement(&mut parser).map_err(|error| describe(error, &parser, script))?;
        match &mut kind {
            Kind::Sql(sql) | Kind::Explain { inner: sql, .. } => rewrite::expressions(sql.as_mut()),
            Kind::Copy(copy) => {
                if let Copy::To { target: CopyTarget::Query(query), .. } = copy.as_mut() {
                    rewrite::expressions(query.as_mut());
                }
            }
            _ => {}
        }
        let next = parser.peek_token();
        let stop = match next.token {
            Token::EOF => end,
            Token::SemiColon => offsets.offset(script, next.span.start),
            _ => return Err(unexpected(&next)),
        };
        let start = offsets.offset(script, first.span.start);
        let text = script.get(start..stop.max(start)).unwrap_or_default().trim().to_owned();
        statements.push(Statement { text, kind });
    }
}

/// The one statement in SQL that we wrote ourselves out of a user's.
pub(crate) fn parse_one(sql: &str) -> Result<ast::Statement> {
    match parse(sql)?.pop() {
        Some(Statement { kind: Kind::Sql(statement), .. }) => Ok(*statement),
        _ => Err(Error::Internal(format!("a rewritten statement does not parse: {sql}"))),
    }
}

fn unexpected(token: &TokenWithSpan) -> Error {
    let Location { line, column } = token.span.start;
    Error::Sql(format!("expected the end of the statement, found '{}' at line {line}, column {column}", token.token))
}

fn describe(error: ParserError, parser: &Parser<'_>, script: &str) -> Error {
    match error {
        ParserError::RecursionLimitExceeded => {
            Error::Sql(format!("the statement nests deeper than {DEPTH_MAX}; split it with WITH or temporary tables"))
        }
        ParserError::ParserError(message) | ParserError::TokenizerError(message) if message.contains("Line:") => {
            Error::Sql(message.replace("Line: ", "line ").replace("Column: ", "column "))
        }
        ParserError::ParserError(message) | ParserError::TokenizerError(message) => {
            let Location { line, column } = parser.peek_token().span.start;
            Error::Sql(match line {
                0 => format!("{message} at line {}, where the text ends", script.lines().count()),
                _ => format!("{message} at line {line}, column {column}"),
            })
        }
    }
}

/// The word that the next token is, in capitals.
fn word(parser: &Parser<'_>) -> Option<String> {
    match parser.peek_token().token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_uppercase()),
        _ => None,
    }
}

fn statement(parser: &mut Parser<'_>) -> std::result::Result<Kind, ParserError> {
    match word(parser).as_deref() {
        Some("COPY") => {
            parser.next_token();
            Ok(Kind::Copy(Box::new(copy::parse(parser)?)))
        }
        Some("SHOW") => {
            parser.next_token();
            let what = parser.parse_identifier()?.value.to_lowercase();
            let name = match parser.peek_token().token {
                Token::EOF | Token::SemiColon => None,
                _ => Some(parser.parse_object_name(false)?),
            };
            Ok(Kind::Show(what, name))
        }
        Some("DESCRIBE" | "DESC") => {
            parser.next_token();
            if word(parser).as_deref() == Some("TABLE") {
                parser.next_token();
            }
            Ok(Kind::Describe(parser.parse_object_name(false)?))
        }
        Some("SET") => {
            parser.next_token();
            let name = parser.parse_object_name(false)?.to_string().to_lowercase();
            if !parser.consume_token(&Token::Eq) && word(parser).as_deref() == Some("TO") {
                parser.next_token();
            }
            let value = match parser.next_token().token {
                Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => text,
                other => other.to_string(),
            };
            Ok(Kind::Set(name, value))
        }
        Some("CHECKPOINT") => {
            parser.next_token();
            Ok(Kind::Checkpoint)
        }
        Some("VACUUM") => {
            parser.next_token();
            Ok(Kind::Vacuum)
        }
        Some("EXPLAIN") => {
            parser.next_token();
            let mut analyze = false;
            while let Some("ANALYZE" | "VERBOSE") = word(parser).as_deref() {
                analyze |= word(parser).as_deref() == Some("ANALYZE");
                parser.next_token();
            }
            Ok(Kind::Explain { analyze, inner: Box::new(parser.parse_statement()?) })
        }
        _ => Ok(Kind::Sql(Box::new(parser.parse_statement()?))),
    }
}

/// Where lines begin, so that the tokenizer's lines and columns become byte offsets.
struct LineOffsets(Vec<usize>);

impl LineOffsets {
    fn new(script: &str) -> LineOffsets {
        let mut starts = vec![0];
        starts.extend(script.match_indices('\n').map(|(index, _)| index + 1));
        LineOffsets(starts)
    }

    /// Lines and columns count from 1; columns count characters.
    fn offset(&self, script: &str, at: Location) -> usize {
        let Some(&start) = usize::try_from(at.line).ok().and_then(|line| self.0.get(line.checked_sub(1)?)) else {
            return script.len();
        };
        let column = usize::try_from(at.column).unwrap_or(0).saturating_sub(1);
        script[start..].char_indices().nth(column).map_or(script.len(), |(index, _)| start + index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_cut_where_statements_end() {
        let script = "SELECT 'ä;b' ; -- a comment; with a semicolon\n\nSHOW STORAGE t;CHECKPOINT";
        let texts: Vec<String> = parse(script).unwrap().into_iter().map(|statement| statement.text).collect();
        assert_eq!(texts, ["SELECT 'ä;b'", "SHOW STORAGE t", "CHECKPOINT"]);
    }

    #[test]
    fn errors_say_where() {
        let error = parse("SELECT 1;\nSELECT a FROM (b").unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        let deep = format!("SELECT {}1{}", "(".repeat(5000), ")".repeat(5000));
        assert!(parse(&deep).unwrap_err().to_string().contains("deeper"));
    }
}
