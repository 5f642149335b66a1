//! What Tab offers: keywords, functions, tables, columns of the tables in the statement, dot commands, files in quotes.

use crate::dot::COMMANDS;
use crate::lex::{Inside, Kind, Lexer};
use crate::session::quote_name;
use crate::words::{FUNCTIONS, KEYWORDS, TYPES};
use rustyline::completion::{FilenameCompleter, Pair};

/// Where names come from.
pub(crate) trait Names {
    /// Tables, without their schemas.
    fn tables(&self) -> Vec<String>;
    /// Columns of a table; none when there is no such table.
    fn columns(&self, table: &str) -> Vec<String>;
}

impl Names for sinterdb::Connection {
    fn tables(&self) -> Vec<String> {
        self.table_names().into_iter().map(|(_, table)| table).collect()
    }

    fn columns(&self, table: &str) -> Vec<String> {
        self.column_names(table)
    }
}

/// Candidates at byte `position` of `line`, and from where they replace it; `pending` are the lines before.
pub(crate) fn candidates(names: &dyn Names, pending: &str, line: &str, position: usize) -> (usize, Vec<Pair>) {
    let before = &line[..position];
    if pending.is_empty() && before.trim_start().starts_with('.') {
        return dot_candidates(names, before);
    }
    let mut lexer = Lexer::default();
    lexer.spans(pending).for_each(drop);
    let last = lexer.spans(before).last().map(|(kind, _)| kind);
    match lexer.inside() {
        Inside::String { .. } => files(before),
        Inside::Nothing if last != Some(Kind::Comment) => words(names, &format!("{pending}{line}"), before),
        _ => (position, Vec::new()),
    }
}

fn dot_candidates(names: &dyn Names, before: &str) -> (usize, Vec<Pair>) {
    let start = before.rfind(char::is_whitespace).map_or(0, |blank| blank + 1);
    let word = &before[start..];
    let command = before.split_whitespace().next().unwrap_or_default();
    if before[..start].trim().is_empty() {
        return (start, matching(word, COMMANDS.iter().map(|command| command.name.to_owned())));
    }
    match command {
        ".read" | ".import" => files(before),
        ".mode" => (start, matching(word, ["table", "box", "csv", "json", "markdown", "line"].map(String::from))),
        ".timer" => (start, matching(word, ["on", "off"].map(String::from))),
        ".schema" | ".storage" => (start, matching(word, names.tables().iter().map(|name| quote_name(name)))),
        _ => (start, Vec::new()),
    }
}

/// Files whose names begin with what stands behind the last quote or blank.
fn files(before: &str) -> (usize, Vec<Pair>) {
    FilenameCompleter::new().complete_path(before, before.len()).unwrap_or((before.len(), Vec::new()))
}

fn words(names: &dyn Names, statement: &str, before: &str) -> (usize, Vec<Pair>) {
    let start = before
        .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
        .map_or(0, |position| position + before[position..].chars().next().map_or(1, char::len_utf8));
    let word = &before[start..];
    let tables = names.tables();
    let used = tables_in(statement, &tables);
    if let Some(owner) = before[..start].strip_suffix('.') {
        let owner = owner.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
        let is_owner = |used: &&Used| used.alias.eq_ignore_ascii_case(owner) || used.table.eq_ignore_ascii_case(owner);
        let columns = used.iter().find(is_owner).map_or(Vec::new(), |used| names.columns(&used.table));
        return (start, matching(word, columns.iter().map(|name| quote_name(name))));
    }
    if word.is_empty() {
        return (start, Vec::new());
    }
    let columns = used.iter().flat_map(|used| names.columns(&used.table));
    let mut found = matching(word, columns.chain(tables.iter().cloned()).map(|name| quote_name(&name)));
    found.extend(matching(word, FUNCTIONS.iter().map(|name| (*name).to_owned())));
    let small = word.starts_with(|c: char| c.is_lowercase());
    let keyword = |word: &&str| if small { word.to_ascii_lowercase() } else { (*word).to_owned() };
    found.extend(matching(word, KEYWORDS.iter().chain(TYPES).map(keyword)));
    (start, found)
}

/// Those that begin like `word`, each once, in their order.
fn matching(word: &str, candidates: impl IntoIterator<Item = String>) -> Vec<Pair> {
    let mut found: Vec<Pair> = Vec::new();
    for candidate in candidates {
        let beginning = candidate.trim_start_matches('"').get(..word.len());
        let begins_alike = beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(word));
        if begins_alike && !found.iter().any(|pair| pair.replacement == candidate) {
            found.push(Pair { display: candidate.clone(), replacement: candidate });
        }
    }
    found
}

/// A table that a statement names, and what it calls it.
struct Used {
    table: String,
    alias: String,
}

/// Tables named anywhere in the statement, with the word behind them as alias (`flights f`, `flights AS f`).
fn tables_in(statement: &str, tables: &[String]) -> Vec<Used> {
    let mut lexer = Lexer::default();
    let names: Vec<&str> = lexer
        .spans(statement)
        .filter(|(kind, _)| !matches!(kind, Kind::Space | Kind::Comment))
        .map(|(_, range)| statement[range].trim_matches('"'))
        .filter(|word| !word.eq_ignore_ascii_case("AS"))
        .collect();
    let mut used = Vec::new();
    for (index, name) in names.iter().enumerate() {
        if let Some(table) = tables.iter().find(|table| table.eq_ignore_ascii_case(name)) {
            let alias = names.get(index + 1).copied().unwrap_or_default();
            used.push(Used { table: table.clone(), alias: alias.to_owned() });
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Shop;

    impl Names for Shop {
        fn tables(&self) -> Vec<String> {
            ["orders", "lineitem", "Odd Name"].map(String::from).to_vec()
        }

        fn columns(&self, table: &str) -> Vec<String> {
            match table {
                "orders" => ["o_orderkey", "o_comment"].map(String::from).to_vec(),
                "lineitem" => ["l_orderkey", "l_comment"].map(String::from).to_vec(),
                _ => Vec::new(),
            }
        }
    }

    /// Completes at `|`.
    fn complete(text: &str) -> Vec<String> {
        let position = text.find('|').unwrap();
        let line = text.replace('|', "");
        let (_, pairs) = candidates(&Shop, "", &line, position);
        pairs.into_iter().map(|pair| pair.replacement).collect()
    }

    #[test]
    fn keywords_follow_the_case_that_was_begun() {
        assert_eq!(complete("sel|"), ["select"]);
        assert_eq!(complete("SEL|"), ["SELECT"]);
        assert_eq!(complete("|"), [""; 0]);
    }

    #[test]
    fn columns_of_the_tables_in_the_statement_come_first() {
        assert_eq!(complete("SELECT o_| FROM orders"), ["o_orderkey", "o_comment"]);
        assert_eq!(complete("SELECT l_c| FROM orders"), [""; 0]);
        assert_eq!(complete("SELECT * FROM ord|")[0], "orders");
        assert_eq!(complete("SELECT * FROM odd|"), ["\"Odd Name\""]);
    }

    #[test]
    fn a_point_asks_for_columns_of_a_table_or_an_alias() {
        assert_eq!(complete("SELECT l.| FROM orders o, lineitem AS l"), ["l_orderkey", "l_comment"]);
        assert_eq!(complete("SELECT orders.o_c| FROM orders"), ["o_comment"]);
        assert_eq!(complete("SELECT x.| FROM orders"), [""; 0]);
    }

    #[test]
    fn dot_commands_and_their_arguments() {
        assert_eq!(complete(".st|"), [".storage"]);
        assert_eq!(complete(".storage l|"), ["lineitem"]);
        assert_eq!(complete(".mode m|"), ["markdown"]);
    }

    #[test]
    fn files_are_offered_within_quotes() {
        assert_eq!(complete("SELECT * FROM 'Cargo.t|"), ["Cargo.toml"]);
        assert_eq!(complete("SELECT 1 -- sel|"), [""; 0]);
    }
}
