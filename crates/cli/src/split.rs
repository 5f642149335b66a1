//! Cuts a script into statements and dot commands, line by line.

use crate::lex::{Inside, Kind, Lexer};

/// One thing to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// SQL, without its semicolon.
    Statement(Located),
    /// A line such as `.tables`, from the dot on.
    Dot(Located),
}

/// Text and where in the script it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    /// As it was written, without the blanks around it.
    pub(crate) text: String,
    /// Counted from 1.
    pub(crate) line: usize,
    /// Characters before it on its line.
    pub(crate) indent: usize,
}

/// Collects lines until a statement is whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Splitter {
    lexer: Lexer,
    /// The statement so far, from its first span that is not blank.
    pending: String,
    /// Where `pending` begins.
    pending_line: usize,
    pending_indent: usize,
    /// `pending` holds more than comments.
    has_code: bool,
    lines_seen: usize,
}

impl Splitter {
    /// Takes text that ends with a line end (or ends the script) and returns what became whole by it.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for line in text.split_inclusive('\n') {
            self.push_line(line, &mut pieces);
        }
        pieces
    }

    fn push_line(&mut self, line: &str, pieces: &mut Vec<Piece>) {
        self.lines_seen += 1;
        let trimmed = line.trim();
        if !self.has_code && *self.lexer.inside() == Inside::Nothing && trimmed.starts_with('.') {
            self.pending.clear();
            let indent = line.len() - line.trim_start().len();
            pieces.push(Piece::Dot(Located { text: trimmed.to_owned(), line: self.lines_seen, indent }));
            return;
        }
        let mut lexer = std::mem::take(&mut self.lexer);
        for (kind, range) in lexer.spans(line) {
            if kind == Kind::Symbol(';') {
                pieces.extend(self.take());
                continue;
            }
            if self.pending.is_empty() {
                if kind == Kind::Space {
                    continue;
                }
                self.pending_line = self.lines_seen;
                self.pending_indent = line[..range.start].chars().count();
            }
            self.has_code |= !matches!(kind, Kind::Space | Kind::Comment);
            self.pending.push_str(&line[range]);
        }
        self.lexer = lexer;
    }

    /// The last statement of a script, which needs no semicolon.
    pub(crate) fn finish(&mut self) -> Option<Piece> {
        self.lexer = Lexer::default();
        self.take()
    }

    /// Forgets an unfinished statement.
    pub(crate) fn clear(&mut self) {
        self.lexer = Lexer::default();
        self.take();
    }

    /// The unfinished statement.
    pub(crate) fn pending(&self) -> &str {
        &self.pending
    }

    /// What the unfinished statement has open.
    pub(crate) fn inside(&self) -> &Inside {
        self.lexer.inside()
    }

    /// A statement has begun and waits for its semicolon.
    pub(crate) fn is_waiting(&self) -> bool {
        self.has_code || *self.lexer.inside() != Inside::Nothing
    }

    fn take(&mut self) -> Option<Piece> {
        let mut text = std::mem::take(&mut self.pending);
        text.truncate(text.trim_end().len());
        let (line, indent) = (self.pending_line, self.pending_indent);
        std::mem::take(&mut self.has_code).then_some(Piece::Statement(Located { text, line, indent }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(script: &str) -> Vec<(String, usize)> {
        let mut splitter = Splitter::default();
        let mut pieces = splitter.push(script);
        pieces.extend(splitter.finish());
        pieces
            .into_iter()
            .map(|piece| match piece {
                Piece::Statement(located) => (located.text, located.line),
                Piece::Dot(located) => (format!("dot {}", located.text), located.line),
            })
            .collect()
    }

    #[test]
    fn statements_end_at_semicolons_outside_of_quotes_and_comments() {
        assert_eq!(
            pieces("SELECT ';' /* ; */, \";\" -- ;\n, $x$;$x$;\n\n  SELECT\n2"),
            [("SELECT ';' /* ; */, \";\" -- ;\n, $x$;$x$".into(), 1), ("SELECT\n2".into(), 4)]
        );
    }

    #[test]
    fn a_script_of_comments_and_semicolons_holds_no_statement() {
        assert_eq!(pieces("-- nothing\n;;/* here */;\n"), []);
    }

    #[test]
    fn a_leading_comment_stays_with_its_statement() {
        assert_eq!(pieces("-- why\nSELECT 1;"), [("-- why\nSELECT 1".into(), 1)]);
    }

    #[test]
    fn a_line_that_begins_with_a_dot_is_a_command_only_between_statements() {
        assert_eq!(
            pieces("-- note\n.mode csv\nSELECT 1\n.5;\n  .tables\n"),
            [("dot .mode csv".into(), 2), ("SELECT 1\n.5".into(), 3), ("dot .tables".into(), 5)]
        );
    }

    #[test]
    fn several_statements_on_a_line_know_where_they_begin() {
        let mut splitter = Splitter::default();
        let pieces = splitter.push("SELECT 1; SELECT 2;\n");
        assert_eq!(pieces[1], Piece::Statement(Located { text: "SELECT 2".into(), line: 1, indent: 10 }));
    }

    #[test]
    fn a_long_statement_is_read_once() {
        let mut splitter = Splitter::default();
        splitter.push("INSERT INTO t VALUES\n");
        for _ in 0..200_000 {
            assert!(splitter.push("(1, 'one'),\n").is_empty());
        }
        assert_eq!(splitter.push("(2, 'two');\n").len(), 1);
        assert!(!splitter.is_waiting());
    }
}
