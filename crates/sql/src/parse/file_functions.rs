//! `read_csv('x.csv', delimiter = '|')`: files with options, in FROM.
//!
//! `FROM 'x.csv'` is a table by that name, which the statement's catalog finds. A call becomes such a name too, with the
//! options behind the path, so that one path leads to files.

use datafusion::sql::sqlparser::ast;

/// Between a path and its options, and between two options. No path holds it.
const OPTION: char = '\u{1}';
/// Between an option's name and its value.
const VALUE: char = '\u{2}';

const FUNCTIONS: [(&str, &str); 4] =
    [("read_csv", "csv"), ("read_json", "json"), ("read_parquet", "parquet"), ("read_arrow", "arrow")];

/// Turns a call into a name; what is no such call stays as it is.
pub(super) fn name_call(factor: &mut ast::TableFactor) {
    let ast::TableFactor::Table { name, args, alias, .. } = factor else { return };
    let Some(arguments) = args else { return };
    let format = FUNCTIONS.iter().find(|(function, _)| name.to_string().eq_ignore_ascii_case(function));
    let Some((_, format)) = format else { return };
    let Some((path, options)) = path_and_options(&arguments.args) else { return };
    let mut text = format!("{path}{OPTION}format{VALUE}{format}");
    for (option, value) in options {
        text += &format!("{OPTION}{option}{VALUE}{value}");
    }
    *args = None;
    *name = ast::ObjectName::from(vec![ast::Ident::with_quote('"', text)]);
    alias.get_or_insert_with(|| ast::TableAlias {
        explicit: true,
        name: ast::Ident::with_quote('"', path),
        columns: Vec::new(),
        at: None,
    });
}

/// The path in such a name, and its options; no options where it is only a name.
pub(crate) fn path_of(name: &str) -> (&str, impl Iterator<Item = (&str, &str)>) {
    let mut parts = name.split(OPTION);
    let path = parts.next().unwrap_or_default();
    (path, parts.filter_map(|option| option.split_once(VALUE)))
}

fn path_and_options(arguments: &[ast::FunctionArg]) -> Option<(String, Vec<(String, String)>)> {
    let [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(path)), options @ ..] = arguments else { return None };
    let ast::Expr::Value(path) = path else { return None };
    let ast::Value::SingleQuotedString(path) = &path.value else { return None };
    Some((path.clone(), options.iter().map(option).collect::<Option<_>>()?))
}

/// `name = value`, `name => value` or `name := value`.
fn option(argument: &ast::FunctionArg) -> Option<(String, String)> {
    match argument {
        ast::FunctionArg::Named { name, arg: ast::FunctionArgExpr::Expr(value), .. } => {
            Some((name.value.clone(), text_of(value)))
        }
        ast::FunctionArg::ExprNamed { name, arg: ast::FunctionArgExpr::Expr(value), .. } => {
            Some((text_of(name), text_of(value)))
        }
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::BinaryOp {
            left,
            op: ast::BinaryOperator::Eq,
            right,
        })) => Some((text_of(left), text_of(right))),
        _ => None,
    }
}

fn text_of(expr: &ast::Expr) -> String {
    match expr {
        ast::Expr::Value(value) => value.value.clone().into_string().unwrap_or_else(|| value.to_string()),
        ast::Expr::Identifier(ident) => ident.value.clone(),
        other => other.to_string(),
    }
}
