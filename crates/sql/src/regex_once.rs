//! Regular expressions that are the same for all rows, in what DataFusion evaluates for us: `~` and its kin, `regexp_like`,
//! and `regexp_replace` by constants without dollar signs.
//!
//! DataFusion compiles them anew for each batch. A vector of ours is small: compiling them, and filling the tables that
//! matching fills as it goes, took as long as matching did.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StringViewArray, StringViewBuilder};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::expressions::{BinaryExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use regex_automata::Input;
use regex_automata::meta::{BuildError, Cache, Regex};
use regex_automata::util::captures::Captures;
use regex_automata::util::iter::Searcher;
use regex_automata::util::pool::Pool;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

type Part = Arc<dyn PhysicalExpr>;

/// The expression over rows of this schema, with `text ~ 'regex'`, `regexp_like` and `regexp_replace` compiled once, where all
/// but the text is constant. What does not compile stays, to fail as DataFusion says it.
///
/// # Errors
/// None of its own; DataFusion's tree walk wants to be able to fail.
pub(crate) fn compiled_once(expr: Part, schema: &Schema) -> Result<Part> {
    let rewritten = expr.transform_up(|expr| match ByRegex::of(&expr, schema) {
        Some(ours) => Ok(Transformed::yes(Arc::new(ours) as Part)),
        None => Ok(Transformed::no(expr)),
    })?;
    Ok(rewritten.data)
}

/// A regular expression, and what matching it fills as it goes, for each thread that does.
#[derive(Debug)]
struct Compiled {
    regex: Regex,
    caches: Pool<Cache, MakeCache>,
}

type MakeCache = Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe>;

impl Compiled {
    /// With the limits of what DataFusion compiles.
    fn of(pattern: &str) -> Result<Compiled, Box<BuildError>> {
        let limits = Regex::config().nfa_size_limit(Some(10 << 20)).hybrid_cache_capacity(2 << 20);
        let regex = Regex::builder().configure(limits).build(pattern)?;
        let made = regex.clone();
        Ok(Compiled { regex, caches: Pool::new(Box::new(move || made.create_cache())) })
    }

    fn with_cache<T>(&self, work: impl FnOnce(&mut Cache) -> T) -> T {
        work(&mut self.caches.get())
    }
}

/// What is made of texts.
#[derive(Debug)]
enum Made {
    /// Whether they match, or do not.
    Truth { negated: bool },
    /// The texts with their first match replaced, or with all.
    Text { by: Replacement, all: bool, head: Option<Compiled> },
}

/// An expression of DataFusion's about texts, with its regular expression compiled.
#[derive(Debug)]
struct ByRegex {
    /// As DataFusion has it; equal ones are equal.
    whole: Part,
    texts: Part,
    regex: Compiled,
    made: Made,
}

impl ByRegex {
    /// `None` for what is something else, or of other texts than ours have.
    fn of(whole: &Part, schema: &Schema) -> Option<ByRegex> {
        let (texts, pattern, made) = match (whole.downcast_ref::<BinaryExpr>(), whole.downcast_ref()) {
            (Some(binary), _) => {
                let (flags, negated) = match binary.op() {
                    Operator::RegexMatch => (None, false),
                    Operator::RegexIMatch => (Some("i"), false),
                    Operator::RegexNotMatch => (None, true),
                    Operator::RegexNotIMatch => (Some("i"), true),
                    _ => return None,
                };
                (binary.left(), with_flags(constant(binary.right())?, flags), Made::Truth { negated })
            }
            (None, Some(function)) => of_function(function)?,
            (None, None) => return None,
        };
        if texts.data_type(schema).ok()? != DataType::Utf8View {
            return None;
        }
        let regex = Compiled::of(&pattern).ok()?;
        Some(ByRegex { whole: Arc::clone(whole), texts: Arc::clone(texts), regex, made })
    }

    fn made_of(&self, texts: &StringViewArray) -> ArrayRef {
        let regex = &self.regex.regex;
        match &self.made {
            Made::Truth { negated } => {
                let truths = self.regex.with_cache(|cache| {
                    BooleanBuffer::collect_bool(texts.len(), |row| {
                        let text = Input::new(texts.value(row)).earliest(true);
                        regex.search_half_with(cache, &text).is_some() != *negated
                    })
                });
                Arc::new(BooleanArray::new(truths, texts.nulls().cloned()))
            }
            Made::Text { by, all: true, .. } => {
                let mut groups = by.groups_of(regex);
                self.regex.with_cache(|cache| replaced(texts, |text, out| by.all(regex, cache, &mut groups, text, out)))
            }
            Made::Text { by, all: false, head: None } => {
                let mut groups = by.groups_of(regex);
                self.regex.with_cache(|cache| {
                    replaced(texts, |text, out| {
                        regex.search_captures_with(cache, &Input::new(text), &mut groups);
                        by.first(&groups, text, out);
                    })
                })
            }
            Made::Text { by, all: false, head: Some(head) } => {
                let (mut groups, mut groups_of_head) = (by.groups_of(regex), by.groups_of(&head.regex));
                self.regex.with_cache(|cache| {
                    head.with_cache(|cache_of_head| {
                        replaced(texts, |text, out| {
                            let input = Input::new(text);
                            head.regex.search_captures_with(cache_of_head, &input, &mut groups_of_head);
                            match groups_of_head.get_group(0) {
                                Some(found) if found.start == 0 && !text[found.end..].contains('\n') => {
                                    by.write(&groups_of_head, text, out);
                                }
                                Some(_) => {
                                    regex.search_captures_with(cache, &input, &mut groups);
                                    by.first(&groups, text, out);
                                }
                                None => out.push_str(text),
                            }
                        })
                    })
                })
            }
        }
    }
}

/// Of each text that there is, what `replace` appends.
fn replaced(texts: &StringViewArray, mut replace: impl FnMut(&str, &mut String)) -> ArrayRef {
    let mut all = StringViewBuilder::with_capacity(texts.len());
    let mut room = String::new();
    for text in texts {
        all.append_option(text.map(|text| {
            room.clear();
            replace(text, &mut room);
            room.as_str()
        }));
    }
    Arc::new(all.finish())
}

/// Of `^x.*$`, `^x`: where that matches at the start, the whole does, up to the end of the line, with the same groups. `None`
/// where this may be otherwise, as it is in `^x|y.*$`, of which DataFusion believes it.
fn head_of(pattern: &str) -> Option<&str> {
    let head = pattern.strip_suffix(".*$").filter(|head| head.starts_with('^'))?;
    let inner = head.replace("(?:", "").replace("(?P<", "").replace("(?<", "");
    (!inner.contains("(?") && !inner.contains('|')).then_some(head)
}

/// The texts, the pattern and what is made of them by `regexp_like(text, pattern [, flags])` and
/// `regexp_replace(text, pattern, replacement [, flags])`.
fn of_function(function: &ScalarFunctionExpr) -> Option<(&Part, String, Made)> {
    let constants = |from: usize| function.args().iter().skip(from).map(constant).collect::<Option<Vec<_>>>();
    match function.name() {
        "regexp_like" => {
            let (pattern, flags) = match constants(1)?[..] {
                [pattern] => (pattern, None),
                [pattern, flags] if !flags.contains('g') => (pattern, Some(flags)),
                _ => return None,
            };
            Some((function.args().first()?, with_flags(pattern, flags), Made::Truth { negated: false }))
        }
        "regexp_replace" => {
            let (pattern, by, flags) = match constants(1)?[..] {
                [pattern, by] => (pattern, by, None),
                [pattern, by, flags] => (pattern, by, Some(flags)),
                _ => return None,
            };
            let others = flags.filter(|flags| *flags != "g").map(|flags| flags.replace('g', ""));
            let by = Replacement::of(by)?;
            let head = head_of(pattern).filter(|_| flags.is_none() && !by.0.contains(&Piece::Group(0)));
            let head = head.and_then(|head| Compiled::of(head).ok());
            let all = flags.is_some_and(|flags| flags.contains('g'));
            let pattern = with_flags(pattern, others.as_deref());
            Some((function.args().first()?, pattern, Made::Text { by, all, head }))
        }
        _ => None,
    }
}

/// A text that is the same in all rows, and is one.
fn constant(expr: &Part) -> Option<&str> {
    expr.downcast_ref::<Literal>()?.value().try_as_str()?
}

fn with_flags(pattern: &str, flags: Option<&str>) -> String {
    flags.map_or_else(|| pattern.to_owned(), |flags| format!("(?{flags}){pattern}"))
}

/// What matches are replaced by: pieces of text, and groups of the match.
#[derive(Debug)]
struct Replacement(Vec<Piece>);

#[derive(Debug, PartialEq)]
enum Piece {
    Text(String),
    Group(usize),
}

impl Replacement {
    /// `\1` and `\\1` are groups. `None` for dollar signs, which speak of groups as well, by rules of DataFusion's, for other
    /// digits than ours, and for numbers that no group has.
    fn of(replacement: &str) -> Option<Replacement> {
        if replacement.contains(|char: char| char == '$' || !char.is_ascii() && char.is_numeric()) {
            return None;
        }
        let mut pieces = vec![Piece::Text(String::new())];
        let mut rest = replacement;
        while let Some(char) = rest.chars().next() {
            let number = rest.strip_prefix(r"\\").or(rest.strip_prefix('\\')).unwrap_or_default();
            let digits = number.len() - number.trim_start_matches(|char: char| char.is_ascii_digit()).len();
            if digits > 0 {
                pieces.extend([Piece::Group(number[..digits].parse().ok()?), Piece::Text(String::new())]);
                rest = &number[digits..];
            } else {
                if let Some(Piece::Text(text)) = pieces.last_mut() {
                    text.push(char);
                }
                rest = &rest[char.len_utf8()..];
            }
        }
        pieces.retain(|piece| *piece != Piece::Text(String::new()));
        Some(Replacement(pieces))
    }

    /// Room for what it wants to know of a match.
    fn groups_of(&self, regex: &Regex) -> Captures {
        match self.0.iter().any(|piece| matches!(piece, Piece::Group(1..))) {
            true => regex.create_captures(),
            false => Captures::matches(regex.group_info().clone()),
        }
    }

    /// Appends it for a match.
    fn write(&self, groups: &Captures, text: &str, out: &mut String) {
        for piece in &self.0 {
            out.push_str(match piece {
                Piece::Text(text) => text,
                Piece::Group(number) => groups.get_group(*number).map_or("", |group| &text[group]),
            });
        }
    }

    /// Appends the text with this match, where it is one, replaced.
    fn first(&self, groups: &Captures, text: &str, out: &mut String) {
        let Some(found) = groups.get_group(0) else { return out.push_str(text) };
        out.push_str(&text[..found.start]);
        self.write(groups, text, out);
        out.push_str(&text[found.end..]);
    }

    /// Appends the text with all matches replaced.
    fn all(&self, regex: &Regex, cache: &mut Cache, groups: &mut Captures, text: &str, out: &mut String) {
        let mut copied = 0;
        let mut matches = Searcher::new(Input::new(text));
        while let Some(found) = matches.advance(|input| {
            regex.search_captures_with(cache, input, groups);
            Ok(groups.get_match())
        }) {
            out.push_str(&text[copied..found.start()]);
            self.write(groups, text, out);
            copied = found.end();
        }
        out.push_str(&text[copied..]);
    }
}

impl PartialEq for ByRegex {
    fn eq(&self, other: &ByRegex) -> bool {
        self.whole.eq(&other.whole)
    }
}

impl Eq for ByRegex {}

impl Hash for ByRegex {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.whole.hash(state);
    }
}

impl PhysicalExpr for ByRegex {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.whole.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.whole.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let texts = self.texts.evaluate(batch)?.into_array(batch.num_rows())?;
        let Some(texts) = texts.as_string_view_opt() else {
            return internal_err!("{} is no text", self.texts);
        };
        Ok(ColumnarValue::Array(self.made_of(texts)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.whole]
    }

    /// As DataFusion has it: who changes an expression asks for this again.
    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        match children.pop() {
            Some(whole) => Ok(whole),
            None => internal_err!("an expression is missing"),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.whole.fmt_sql(f)
    }
}

impl fmt::Display for ByRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.whole, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::Field;
    use datafusion::common::{DFSchema, ScalarValue};
    use datafusion::execution::context::ExecutionProps;
    use datafusion::functions::regex::{regexp_like, regexp_replace};
    use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
    use datafusion::logical_expr::{Expr, binary_expr, col};
    use datafusion::physical_expr::create_physical_expr;

    const TEXTS: [Option<&str>; 11] = [
        Some(""),
        Some("a"),
        None,
        Some("aXbXc"),
        Some("日本X本"),
        Some("xx\nyy"),
        Some("banana"),
        Some("xxab"),
        Some("https://www.a.b/c?d=e"),
        Some("https://a/b\nhttps://c/d"),
        Some("A B"),
    ];

    const PATTERNS: [&str; 15] = [
        "",
        "a",
        "X|本",
        "(a)(n)?",
        "(?:^|n)(a)",
        ".*",
        "(.)$",
        "^https?://(?:www\\.)?([^/]+)/.*$",
        "^(?:http|ftp)s?://([^/]+)/.*$",
        "^(a)\\.*$",
        "^(?s)(.).*$",
        "^(?:b)(?<x>a*?).*$",
        "(é)?b",
        "(",
        "x{2}|\\bB",
    ];

    fn text(text: &str) -> Expr {
        Expr::Literal(ScalarValue::Utf8View(Some(text.to_owned())), None)
    }

    /// What DataFusion makes of the texts, and what is made of them here, if anything.
    fn both(expr: &Expr) -> (Result<ArrayRef>, Option<ArrayRef>) {
        let schema = Schema::new(vec![Field::new("t", DataType::Utf8View, true)]);
        let texts = Arc::new(StringViewArray::from_iter(TEXTS));
        let batch = RecordBatch::try_new(Arc::new(schema.clone()), vec![texts]).unwrap();
        let inner = DFSchema::try_from(schema.clone()).unwrap();
        let (props, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
        let theirs = create_physical_expr(expr, &inner, &props, &context).unwrap();
        let ours = compiled_once(Arc::clone(&theirs), &schema).unwrap();
        let evaluated = |expr: &Part| expr.evaluate(&batch)?.into_array(TEXTS.len());
        (evaluated(&theirs), ours.is::<ByRegex>().then(|| evaluated(&ours).unwrap()))
    }

    #[test]
    fn replacements_are_those_of_datafusion() {
        let replacements =
            ["", "-", r"\1", r"<\0>", r"\\1\2", r"\3x\", r"\\", r"a\1é\12", "$1", "\\٣", r"\99999999999999999999"];
        let mut compiled = 0;
        for (pattern, by) in PATTERNS.iter().flat_map(|pattern| replacements.map(|by| (*pattern, by))) {
            for flags in [None, Some(""), Some("g"), Some("i"), Some("gi"), Some("gg"), Some("?")] {
                let arguments = [Some(pattern), Some(by), flags].into_iter().flatten().map(text);
                let expr = regexp_replace().call([col("t")].into_iter().chain(arguments).collect());
                let (theirs, ours) = both(&expr);
                if let Some(ours) = ours {
                    assert_eq!(&ours, &theirs.unwrap(), "{pattern:?} by {by:?}, flags {flags:?}");
                    compiled += 1;
                }
            }
        }
        // Of 15 patterns one is none, of 11 replacements three are DataFusion's, of 7 flags three.
        assert_eq!(compiled, 14 * 8 * 4);
    }

    #[test]
    fn matches_are_those_of_datafusion() {
        let operators =
            [Operator::RegexMatch, Operator::RegexIMatch, Operator::RegexNotMatch, Operator::RegexNotIMatch];
        for pattern in PATTERNS {
            let by_operator = operators.map(|operator| binary_expr(col("t"), operator, text(pattern)));
            let by_function = [None, Some(""), Some("i"), Some("s"), Some("g")].map(|flags| {
                let arguments = [Some(pattern), flags].into_iter().flatten().map(text);
                regexp_like().call([col("t")].into_iter().chain(arguments).collect())
            });
            for expr in by_operator.iter().chain(&by_function) {
                let (theirs, ours) = both(expr);
                assert!(ours.is_some() || theirs.is_err(), "{expr}");
                if let Some(ours) = ours {
                    assert_eq!(&ours, &theirs.unwrap(), "{expr}");
                }
            }
        }
    }

    #[test]
    fn what_may_begin_elsewhere_leaves_the_rest_as_it_is() {
        // DataFusion takes it away.
        for (pattern, expected) in [("^(x)|y.*$", "xxab"), ("^?a(.).*$", "xxb"), ("^?(b).*$", "xxab")] {
            let (_, ours) = both(&regexp_replace().call(vec![col("t"), text(pattern), text(r"\1")]));
            assert_eq!(ours.unwrap().as_string_view().value(7), expected, "{pattern}");
        }
        for (pattern, head) in
            [("^a(.).*$", Some("^a(.)")), ("a.*$", None), ("^a|b.*$", None), ("^(?x)(a) # .*$", None), ("^a.*", None)]
        {
            assert_eq!(head_of(pattern), head, "{pattern}");
        }
    }
}
