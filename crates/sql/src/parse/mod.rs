//! Scripts as statements: ours, which DataFusion's front end refuses, and all others.

mod any_of_lists;
mod casts;
mod copy;
mod depth;
mod dialect;
mod distinct_from;
mod file_functions;
mod float_rows;
mod grouping_sets;
mod rewrite;
mod row_comparisons;
mod values;
mod walk;
mod windows;

pub(crate) use casts::coalesce;
pub(crate) use copy::{Copy, CopyTarget, FileOption};
pub(crate) use file_functions::path_of;
pub(crate) use float_rows::{is_cast_to_float, with_rows_of_floats};
pub(crate) use rewrite::column_names;
pub(crate) use walk::{each_expr_mut, walk_mut};

use crate::{Error, Result};
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use dialect::Bounded;

/// One parsed statement of a script.
#[derive(Clone, Debug)]
pub struct Statement {
    /// As it was written, without the semicolon.
    pub text: String,
    /// How deep its expressions may nest, at most.
    pub(crate) depth: usize,
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
    /// `BACKUP TO 'file'`.
    Backup { path: String },
    /// `ATTACH [DATABASE] [IF NOT EXISTS] 'file' [AS name] [(READ_ONLY)]`.
    Attach(Attach),
    /// `DETACH [DATABASE] [IF EXISTS] name`.
    Detach { name: ast::Ident, if_exists: bool },
    /// `EXPLAIN [ANALYZE]`.
    Explain { analyze: bool, inner: Box<ast::Statement> },
}

/// A parsed ATTACH.
#[derive(Clone, Debug)]
pub(crate) struct Attach {
    pub(crate) path: String,
    pub(crate) name: Option<ast::Ident>,
    pub(crate) read_only: bool,
    pub(crate) if_not_exists: bool,
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
    let mut depths = depth::of_statements(&tokens)?.into_iter();
    rewrite::struct_types(&mut tokens);
    rewrite::columns_called_key(&mut tokens);
    let last = tokens.iter().rev().find(|token| !matches!(token.token, Token::EOF)).map(|token| token.span.end);
    let mut place = Place::start(script);
    let dialect = Bounded::new(tokens.len());
    let mut parser = Parser::new(&dialect).with_recursion_limit(DEPTH_MAX).with_tokens_with_locations(tokens);
    let mut statements = Vec::new();
    loop {
        while parser.consume_token(&Token::SemiColon) {}
        let first = parser.peek_token();
        if first.token == Token::EOF {
            return Ok(statements);
        }
        let start = place.move_to(first.span.start);
        let mut kind = statement(&mut parser).map_err(|error| describe(error, &parser, &dialect, script))?;
        match &mut kind {
            Kind::Sql(sql) | Kind::Explain { inner: sql, .. } => rewrite::expressions(sql.as_mut())?,
            Kind::Copy(copy) => {
                if let Copy::To { target: CopyTarget::Query(query), .. } = copy.as_mut() {
                    rewrite::expressions(query.as_mut())?;
                }
            }
            _ => {}
        }
        let next = parser.peek_token();
        let stop = match next.token {
            Token::EOF => last.map_or(script.len(), |last| place.move_to(last)),
            Token::SemiColon => place.move_to(next.span.start),
            _ => return Err(unexpected(&next)),
        };
        let text = script.get(start..stop.max(start)).unwrap_or_default().trim().to_owned();
        statements.push(Statement { text, depth: depths.next().unwrap_or(0), kind });
    }
}

/// The one statement in SQL that we wrote ourselves out of a user's.
pub(crate) fn parse_one(sql: &str) -> Result<ast::Statement> {
    match parse(sql)?.pop() {
        Some(Statement { kind: Kind::Sql(statement), .. }) => Ok(*statement),
        _ => Err(Error::Internal(format!("a rewritten statement does not parse: {sql}"))),
    }
}

/// One expression, such as a default that the catalog keeps as text.
pub(crate) fn parse_expr(text: &str) -> Result<ast::Expr> {
    let dialect = Bounded::new(text.len());
    let parsed = Parser::new(&dialect).with_recursion_limit(DEPTH_MAX).try_with_sql(text).and_then(|mut parser| {
        let expr = parser.parse_expr()?;
        parser.expect_token(&Token::EOF)?;
        Ok(expr)
    });
    let mut expr = parsed.map_err(|error| Error::Sql(format!("'{text}' is no expression: {error}")))?;
    rewrite::expressions(&mut expr)?;
    Ok(expr)
}

fn unexpected(token: &TokenWithSpan) -> Error {
    let Location { line, column } = token.span.start;
    Error::Sql(format!("expected the end of the statement, found '{}' at line {line}, column {column}", token.token))
}

fn describe(error: ParserError, parser: &Parser<'_>, dialect: &Bounded, script: &str) -> Error {
    match error {
        ParserError::RecursionLimitExceeded if dialect.is_exhausted() => Error::Sql(
            "there is a mistake within nested NOT, CAST, ARRAY or the like; look at the innermost".to_owned(),
        ),
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
        Some("BACKUP") => {
            parser.next_token();
            parser.expect_keyword(Keyword::TO)?;
            Ok(Kind::Backup { path: parser.parse_literal_string()? })
        }
        Some("ATTACH") => {
            parser.next_token();
            Ok(Kind::Attach(attach(parser)?))
        }
        Some("DETACH") => {
            parser.next_token();
            let _ = parser.parse_keyword(Keyword::DATABASE);
            let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
            Ok(Kind::Detach { name: parser.parse_identifier()?, if_exists })
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

/// What follows the word ATTACH.
fn attach(parser: &mut Parser<'_>) -> std::result::Result<Attach, ParserError> {
    let _ = parser.parse_keyword(Keyword::DATABASE);
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let path = parser.parse_literal_string()?;
    let name = if parser.parse_keyword(Keyword::AS) { Some(parser.parse_identifier()?) } else { None };
    let read_only = parser.consume_token(&Token::LParen);
    if read_only {
        if word(parser).as_deref() != Some("READ_ONLY") {
            let found = parser.peek_token();
            return parser.expected("READ_ONLY", found);
        }
        parser.next_token();
        parser.expect_token(&Token::RParen)?;
    }
    Ok(Attach { path, name, read_only, if_not_exists })
}

/// A place in a script that only moves on, so that the tokenizer's lines and columns become byte offsets in one pass.
struct Place<'a> {
    rest: std::str::CharIndices<'a>,
    at: Location,
}

impl Place<'_> {
    fn start(script: &str) -> Place<'_> {
        Place { rest: script.char_indices(), at: Location { line: 1, column: 1 } }
    }

    /// The byte offset of a location that is not before the last one. Lines and columns count from 1, columns in
    /// characters.
    fn move_to(&mut self, to: Location) -> usize {
        while self.at < to {
            match self.rest.next() {
                Some((_, '\n')) => self.at = Location { line: self.at.line + 1, column: 1 },
                Some(_) => self.at.column += 1,
                None => break,
            }
        }
        self.rest.offset()
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

    #[test]
    fn a_long_script_on_one_line_is_cut_in_one_pass() {
        let statements = parse(&"SELECT 'ü' ; ".repeat(30_000)).unwrap();
        assert_eq!(statements.len(), 30_000);
        assert!(statements.iter().all(|statement| statement.text == "SELECT 'ü'"));
    }
}
