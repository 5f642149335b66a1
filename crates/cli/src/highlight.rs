//! Colours for SQL while it is typed.

use crate::lex::{Inside, Kind, Lexer};
use crate::words::{KEYWORDS, TYPES};
use console::Style;

/// `text` with escape sequences; `inside` is what the lines before it have left open.
pub(crate) fn coloured(text: &str, inside: &Inside) -> String {
    if *inside == Inside::Nothing && text.trim_start().starts_with('.') {
        return Style::new().cyan().force_styling(true).apply_to(text).to_string();
    }
    let mut lexer = Lexer::resume(inside.clone());
    let mut coloured = String::with_capacity(text.len() * 2);
    for (kind, range) in lexer.spans(text) {
        let span = &text[range];
        match style(kind, span) {
            Some(style) => coloured.push_str(&style.force_styling(true).apply_to(span).to_string()),
            None => coloured.push_str(span),
        }
    }
    coloured
}

fn style(kind: Kind, span: &str) -> Option<Style> {
    match kind {
        Kind::Word => {
            let word = span.to_ascii_uppercase();
            if KEYWORDS.binary_search(&word.as_str()).is_ok() {
                Some(Style::new().blue().bold())
            } else {
                TYPES.binary_search(&word.as_str()).is_ok().then(|| Style::new().cyan())
            }
        }
        Kind::Number => Some(Style::new().magenta()),
        Kind::String => Some(Style::new().green()),
        Kind::Comment => Some(Style::new().dim()),
        Kind::QuotedName | Kind::Space | Kind::Symbol(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_change_nothing_but_colours() {
        for text in ["SELECT 'a' || x, 1.5 -- c", ".mode csv", "not ended 'é", "/* x"] {
            assert_eq!(console::strip_ansi_codes(&coloured(text, &Inside::Nothing)), text);
        }
        assert_ne!(coloured("select 1", &Inside::Nothing), "select 1");
    }

    #[test]
    fn a_string_goes_on_over_lines() {
        let open = Inside::String { escapes: false };
        assert_eq!(coloured("a' b", &open), "\u{1b}[32ma'\u{1b}[0m b");
    }
}
