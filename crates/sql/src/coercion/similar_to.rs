//! SIMILAR TO as SQL has it.
//!
//! A whole text is similar to a pattern, in which `%` is any text and `_` any character, `|`, `*`, `+`, `?`, `{}`, `()` and
//! `[]` are those of regular expressions, and all else is itself, also what stands behind the escape, a backslash unless it
//! is said. DataFusion looks for a regular expression anywhere in the text instead.

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::Like;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use std::str::Chars;
use std::sync::{Arc, LazyLock};

static REGEX_OF_PATTERN: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(RegexOfPattern { signature: Signature::any(2, Volatility::Immutable) })));

/// SIMILAR TO as a regular expression.
pub(super) fn by_regex(similar: Like) -> Expr {
    let op = if similar.negated { Operator::RegexNotMatch } else { Operator::RegexMatch };
    let escape = lit(similar.escape_char.unwrap_or('\\').to_string());
    let regex = REGEX_OF_PATTERN.call(vec![*similar.pattern, escape]);
    Expr::BinaryExpr(BinaryExpr::new(similar.expr, op, Box::new(regex)))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RegexOfPattern {
    signature: Signature,
}

impl ScalarUDFImpl for RegexOfPattern {
    fn name(&self) -> &str {
        "regex_of_pattern"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let Ok([patterns, ColumnarValue::Scalar(escape)]) = <[ColumnarValue; 2]>::try_from(arguments.args) else {
            return internal_err!("regex_of_pattern takes patterns and an escape");
        };
        let Some(escape) = escape.try_as_str().flatten().and_then(|text| text.chars().next()) else {
            return internal_err!("{escape} is no escape");
        };
        let patterns = cast(&patterns.into_array(rows)?, &DataType::Utf8)?;
        let regexes: StringArray = patterns
            .as_string::<i32>()
            .iter()
            .map(|pattern| pattern.map(|pattern| regex_of(pattern, escape)))
            .collect();
        Ok(ColumnarValue::Array(Arc::new(regexes) as ArrayRef))
    }
}

/// The regular expression that finds what is similar to a pattern, all of it.
fn regex_of(pattern: &str, escape: char) -> String {
    let mut regex = String::from("(?s)^(?:");
    let mut chars = pattern.chars();
    // Between braces, a comma parts how often from how often at most.
    let mut counts = false;
    while let Some(char) = chars.next() {
        counts = char == '{' || counts && char != '}';
        match char {
            _ if char == escape => push_itself(chars.next().unwrap_or(escape), &mut regex),
            '[' => push_set(&mut chars, &mut regex),
            '%' => regex.push_str(".*"),
            '_' => regex.push('.'),
            '|' | '*' | '+' | '?' | '{' | '}' | '(' | ')' => regex.push(char),
            ',' if counts => regex.push(char),
            _ => push_itself(char, &mut regex),
        }
    }
    regex.push_str(")$");
    regex
}

/// Adds a set of characters, which ends at the first `]` that is not its first character: ranges, and classes such as
/// `[:alpha:]`.
fn push_set(chars: &mut Chars<'_>, regex: &mut String) {
    regex.push('[');
    if chars.as_str().starts_with('^') {
        regex.extend(chars.next());
    }
    let mut is_first = true;
    while let Some(char) = chars.next() {
        let class = chars.as_str().find(":]").filter(|_| char == '[' && chars.as_str().starts_with(':'));
        match (char, class) {
            (']', _) if !is_first => break,
            (_, Some(length)) => {
                regex.push('[');
                regex.extend(chars.by_ref().take(length + 2));
            }
            ('-', _) if !is_first && !regex.ends_with('-') => regex.push('-'),
            _ => push_itself(char, regex),
        }
        is_first = false;
    }
    regex.push(']');
}

/// Adds a character that finds itself. Letters, digits, `<` and `>` would mean something behind a backslash.
fn push_itself(char: char, regex: &mut String) {
    if char.is_ascii_punctuation() && !matches!(char, '<' | '>') {
        regex.push('\\');
    }
    regex.push(char);
}

#[cfg(test)]
mod tests {
    use super::regex_of;

    #[test]
    fn only_what_sql_lists_means_something() {
        for (pattern, regex) in [
            ("abc", "abc"),
            ("%b_", ".*b."),
            ("a.c$", "a\\.c\\$"),
            ("(a|b)+c{2}?", "(a|b)+c{2}?"),
            ("\\%\\n\\\\", "\\%n\\\\"),
            ("[^a-c%&[]_", "[^a-c\\%\\&\\[]."),
            ("", ""),
            ("a\\", "a\\\\"),
            ("[[:alpha:]_]%", "[[:alpha:]\\_].*"),
            ("[]a-c-]", "[\\]a-c-]"),
            ("a<b>", "a<b>"),
            ("[<>,]", "[<>\\,]"),
            ("a{1,2}b,{1,}", "a{1,2}b\\,{1,}"),
        ] {
            assert_eq!(regex_of(pattern, '\\'), format!("(?s)^(?:{regex})$"), "{pattern}");
        }
        assert_eq!(regex_of("a!%\\", '!'), "(?s)^(?:a\\%\\\\)$");
    }
}
