//! What users write and the SQL parser does not read as they mean it.

use super::walk::{each_expr_mut, walk_mut};
use super::{any_of_lists, casts, distinct_from, file_functions, grouping_sets, row_comparisons, values, windows};
use crate::{Error, Result};
use datafusion::sql::sqlparser::ast::{self, VisitMut, VisitorMut};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// `STRUCT(a INT)` as `STRUCT<a INT>`, where it is a type: behind a column's name, `::` or AS. Elsewhere `struct(a)` is
/// the function.
pub(super) fn struct_types(tokens: &mut [TokenWithSpan]) {
    let mut open_types = Vec::new();
    let mut before: Option<Token> = None;
    let mut is_type = false;
    for token in tokens.iter_mut().map(|token| &mut token.token) {
        match token {
            Token::Whitespace(_) => continue,
            Token::LParen => {
                open_types.push(is_type);
                if is_type {
                    *token = Token::Lt;
                }
            }
            Token::RParen => {
                let closes_type = open_types.pop() == Some(true);
                if closes_type {
                    *token = Token::Gt;
                }
            }
            _ => {}
        }
        is_type = matches!(&token, Token::Word(word) if word.keyword == Keyword::STRUCT && word.quote_style.is_none())
            && before.as_ref().is_some_and(stands_before_a_type);
        before = Some(token.clone());
    }
}

/// `key` and `index` as names of columns in CREATE TABLE, where the parser takes them for MySQL's indexes, which there are
/// none of here.
pub(super) fn columns_called_key(tokens: &mut [TokenWithSpan]) {
    let is = |token: &Token, keyword| matches!(token, Token::Word(word) if word.keyword == keyword);
    let places: Vec<usize> =
        (0..tokens.len()).filter(|&place| !matches!(tokens[place].token, Token::Whitespace(_))).collect();
    let (mut is_first, mut is_create, mut is_table, mut depth) = (true, false, false, 0_usize);
    for (number, &place) in places.iter().enumerate() {
        let next = places.get(number + 1).map(|&next| &tokens[next].token);
        let is_named = next.is_some_and(|next| matches!(next, Token::Word(_)) && !is(next, Keyword::USING));
        let begins_column = depth == 1 && matches!(tokens[places[number - 1]].token, Token::LParen | Token::Comma);
        match &mut tokens[place].token {
            Token::SemiColon => {
                (is_first, is_create, is_table, depth) = (true, false, false, 0);
                continue;
            }
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Word(word) if is_first => is_create = word.keyword == Keyword::CREATE,
            Token::Word(word) if depth == 0 => is_table |= is_create && word.keyword == Keyword::TABLE,
            Token::Word(word)
                if is_table && begins_column && is_named && matches!(word.keyword, Keyword::KEY | Keyword::INDEX) =>
            {
                word.keyword = Keyword::NoKeyword;
            }
            _ => {}
        }
        is_first = false;
    }
}

fn stands_before_a_type(token: &Token) -> bool {
    match token {
        Token::DoubleColon => true,
        Token::Word(word) if word.quote_style.is_none() => !matches!(
            word.keyword,
            Keyword::SELECT
                | Keyword::DISTINCT
                | Keyword::ALL
                | Keyword::WHERE
                | Keyword::ON
                | Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::CASE
                | Keyword::WHEN
                | Keyword::THEN
                | Keyword::ELSE
                | Keyword::BY
                | Keyword::HAVING
                | Keyword::IN
                | Keyword::BETWEEN
                | Keyword::LIKE
                | Keyword::FROM
                | Keyword::SET
                | Keyword::DEFAULT
                | Keyword::RETURNING
                | Keyword::TABLE
                | Keyword::EXISTS
                | Keyword::INTO
                | Keyword::UPDATE
                | Keyword::JOIN
                | Keyword::WITH
                | Keyword::RECURSIVE
        ),
        Token::Word(_) => true,
        _ => false,
    }
}

/// All rewriting of a parsed statement.
///
/// # Errors
/// [`Error::Sql`] for what cannot be what is written.
pub(super) fn expressions<T: VisitMut>(sql: &mut T) -> Result<()> {
    values::as_queries(sql)?;
    distinct_from::read_anew(sql);
    // Names are what is written, so that what comes behind may write it otherwise, and more than once.
    walk_mut(sql, &mut Names)?;
    numbered_parameters(sql)?;
    grouping_sets::into_one_list(sql);
    windows::write_out(sql)?;
    row_comparisons::by_field(sql)?;
    any_of_lists::written_out(sql)?;
    casts::name_apart(sql);
    constants(sql)
}

/// `?` by its number, `$1`.
fn numbered_parameters<T: VisitMut>(sql: &mut T) -> Result<()> {
    let mut count = 0;
    each_expr_mut(sql, &mut |expr| {
        if let ast::Expr::Value(value) = expr
            && let ast::Value::Placeholder(name) = &mut value.value
            && name == "?"
        {
            count += 1;
            *name = format!("${count}");
        }
        Ok(())
    })
}

/// No two expressions of one SELECT are named alike: the SQL library wants `SELECT 1, 1` to have two names, and gives
/// `CAST(a AS INT), CAST(a AS DOUBLE)` the same one. Files with options become tables by a name.
struct Names;

impl VisitorMut for Names {
    type Break = Error;

    fn pre_visit_table_factor(&mut self, factor: &mut ast::TableFactor) -> ControlFlow<Error> {
        file_functions::name_call(factor);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<Error> {
        // Behind DISTINCT, ORDER BY knows expressions only by themselves; beside `*`, columns may have any name already.
        let is_plain = select.distinct.is_none()
            && select
                .projection
                .iter()
                .all(|item| matches!(item, ast::SelectItem::UnnamedExpr(_) | ast::SelectItem::ExprWithAlias { .. }));
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for item in &mut select.projection {
            let expr = match item {
                ast::SelectItem::UnnamedExpr(expr) => expr,
                ast::SelectItem::ExprWithAlias { alias, .. } => {
                    *seen.entry(alias.value.clone()).or_insert(0) += 1;
                    continue;
                }
                _ => continue,
            };
            let text = expr.to_string();
            let count = seen.entry(text.clone()).or_insert(0);
            *count += 1;
            let name = match *count {
                // Of a column, `shared_columns` knows which names are free.
                _ if is_named_by_itself(expr) => continue,
                1 if !is_plain => continue,
                1 => text,
                count => format!("{text}_{count}"),
            };
            let alias = ast::Ident::with_quote('"', name);
            *item = ast::SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
        ControlFlow::Continue(())
    }
}

/// A column, in parentheses or not: its name is the column's.
fn is_named_by_itself(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_) => true,
        ast::Expr::Nested(inner) => is_named_by_itself(inner),
        _ => false,
    }
}

/// What the columns of a query are called where they leave us: expressions as they were written, `sum(x)` and not
/// `sum(t.x)`. `None` for those whose own name is right; empty where that cannot be told, as of `*`.
pub(crate) fn column_names(query: &ast::Query) -> Vec<Option<String>> {
    let mut body = query.body.as_ref();
    let select = loop {
        match body {
            ast::SetExpr::Select(select) => break select,
            ast::SetExpr::Query(inner) => body = inner.body.as_ref(),
            ast::SetExpr::SetOperation { left, .. } => body = left.as_ref(),
            _ => return Vec::new(),
        }
    };
    let name = |item: &ast::SelectItem| match item {
        ast::SelectItem::ExprWithAlias { .. } => Some(None),
        ast::SelectItem::UnnamedExpr(expr) => Some((!is_named_by_itself(expr)).then(|| expr.to_string())),
        _ => None,
    };
    select.projection.iter().map(name).collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// `CAST('digits' AS DOUBLE)`.
pub(super) fn double(digits: String) -> ast::Expr {
    ast::Expr::Cast {
        kind: ast::CastKind::Cast,
        expr: Box::new(ast::Expr::value(ast::Value::SingleQuotedString(digits))),
        data_type: ast::DataType::Double(ast::ExactNumberInfo::None),
        format: None,
        array: false,
    }
}

/// `1e3` as DOUBLE, where `1000.0` is exact: no decimal could hold `5e-324`. `TIMESTAMP '...'` with more than six digits
/// behind the point as one of nanoseconds.
fn constants<T: VisitMut>(sql: &mut T) -> Result<()> {
    each_expr_mut(sql, &mut |expr| {
        match expr {
            ast::Expr::Value(value) => {
                if let ast::Value::Number(digits, _) = &value.value
                    && digits.contains(['e', 'E'])
                {
                    *expr = double(digits.clone());
                }
            }
            ast::Expr::TypedString(ast::TypedString {
                data_type: ast::DataType::Timestamp(unit, _), value, ..
            }) => {
                let digits_behind_the_point = match &value.value {
                    ast::Value::SingleQuotedString(text) => text
                        .rsplit_once('.')
                        .map_or(0, |(_, behind)| behind.bytes().take_while(u8::is_ascii_digit).count()),
                    _ => 0,
                };
                if unit.is_none() && digits_behind_the_point > 6 {
                    *unit = Some(9);
                }
            }
            _ => {}
        }
        Ok(())
    })
}
