//! `COPY t FROM 'file' (options)` and `COPY t | (query) TO 'file' (options)`.

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

/// A parsed COPY.
#[derive(Clone, Debug)]
pub(crate) enum Copy {
    /// Into a table.
    From { table: ast::ObjectName, columns: Vec<ast::Ident>, path: String, options: Vec<FileOption> },
    /// Into a file.
    To { target: CopyTarget, path: String, options: Vec<FileOption> },
}

/// What is written to a file.
#[derive(Clone, Debug)]
pub(crate) enum CopyTarget {
    Table(ast::ObjectName, Vec<ast::Ident>),
    Query(Box<ast::Query>),
}

/// One option; several values where a list was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FileOption {
    pub(crate) name: String,
    pub(crate) values: Vec<String>,
}

/// What follows the word COPY.
pub(super) fn parse(parser: &mut Parser<'_>) -> Result<Copy, ParserError> {
    let target = if parser.consume_token(&Token::LParen) {
        let query = parser.parse_query()?;
        parser.expect_token(&Token::RParen)?;
        CopyTarget::Query(query)
    } else {
        let table = parser.parse_object_name(false)?;
        let mut columns = Vec::new();
        if parser.consume_token(&Token::LParen) {
            columns = parser.parse_comma_separated(Parser::parse_identifier)?;
            parser.expect_token(&Token::RParen)?;
        }
        CopyTarget::Table(table, columns)
    };
    let direction = parser.parse_identifier()?.value.to_uppercase();
    let path = match parser.next_token().token {
        Token::SingleQuotedString(path) | Token::DoubleQuotedString(path) => path,
        other => return parser.expected_ref("a file name in quotes", &at(parser, other)),
    };
    if matches!(&parser.peek_token().token, Token::Word(word) if word.value.eq_ignore_ascii_case("with")) {
        parser.next_token();
    }
    let options = options(parser)?;
    match (direction.as_str(), target) {
        ("TO", target) => Ok(Copy::To { target, path, options }),
        ("FROM", CopyTarget::Table(table, columns)) => Ok(Copy::From { table, columns, path, options }),
        ("FROM", CopyTarget::Query(_)) => Err(ParserError::ParserError(
            "COPY (query) can only be TO a file; name a table to copy FROM one".to_owned(),
        )),
        (other, _) => Err(ParserError::ParserError(format!("COPY wants FROM or TO, found {other}"))),
    }
}

fn at(parser: &Parser<'_>, token: Token) -> datafusion::sql::sqlparser::tokenizer::TokenWithSpan {
    datafusion::sql::sqlparser::tokenizer::TokenWithSpan { token, span: parser.peek_token().span }
}

fn options(parser: &mut Parser<'_>) -> Result<Vec<FileOption>, ParserError> {
    let mut options = Vec::new();
    if !parser.consume_token(&Token::LParen) {
        return Ok(options);
    }
    while !parser.consume_token(&Token::RParen) {
        let name = parser.parse_identifier()?.value.to_lowercase();
        let _ = parser.consume_token(&Token::Eq);
        let values = match parser.peek_token().token {
            Token::Comma | Token::RParen => vec!["true".to_owned()],
            Token::LParen => {
                parser.next_token();
                let values = parser.parse_comma_separated(value)?;
                parser.expect_token(&Token::RParen)?;
                values
            }
            _ => vec![value(parser)?],
        };
        options.push(FileOption { name, values });
        if !parser.consume_token(&Token::Comma) {
            parser.expect_token(&Token::RParen)?;
            break;
        }
    }
    Ok(options)
}

fn value(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    Ok(match parser.next_token().token {
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) | Token::EscapedStringLiteral(text) => text,
        Token::Word(word) => word.value,
        Token::Number(digits, _) => digits,
        other => return parser.expected_ref("an option's value", &at(parser, other)),
    })
}
