//! What a figure should be, and how far it is.

use serde_json::{Value, json};

/// A mark, and how far it was met.
pub struct Mark {
    /// What is asked for.
    pub text: String,
    /// The worst figure there was.
    pub worst: f64,
    /// What it should be.
    pub mark: f64,
    /// Where it was worst.
    pub place: String,
    /// Points at which it was met, and all points.
    pub met: (usize, usize),
    /// Whether that is enough.
    pub is_met: bool,
}

impl Mark {
    /// For people.
    pub fn line(&self) -> String {
        let word = if self.is_met { "met" } else { "MISSED" };
        let (met, of) = self.met;
        format!("{word:<7} {:<58} {met:>4} of {of:<4} worst {:>6.2} at {}", self.text, self.worst, self.place)
    }

    /// For programs.
    pub fn record(&self) -> Value {
        json!({
            "text": self.text, "is_met": self.is_met, "mark": self.mark, "worst": self.worst, "place": self.place,
            "points_met": self.met.0, "points": self.met.1,
        })
    }

    /// Figures that should not be less than this, each with its place; `None` where there are none.
    pub fn at_least(text: String, mark: f64, figures: impl Iterator<Item = (String, f64)>) -> Option<Mark> {
        let figures: Vec<(String, f64)> = figures.collect();
        let (place, worst) = figures.iter().min_by(|a, b| a.1.total_cmp(&b.1)).cloned()?;
        let met = figures.iter().filter(|(_, figure)| *figure >= mark).count();
        Some(Mark { text, worst, mark, place, met: (met, figures.len()), is_met: met == figures.len() })
    }

    /// Figures that should not be more than this.
    pub fn at_most(text: String, mark: f64, figures: impl Iterator<Item = (String, f64)>) -> Option<Mark> {
        let negated = Mark::at_least(text, -mark, figures.map(|(place, figure)| (place, -figure)))?;
        Some(Mark { worst: -negated.worst, mark, ..negated })
    }
}
