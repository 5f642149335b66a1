//! Rows and columns of text, fitted to a width.
//!
//! Where the natural widths do not fit, text columns give way first, the widest before the others; numbers are never
//! cut. If that is not enough, columns in the middle are left out, and `…` stands for them.

use crate::failure::Result;
use console::{Style, measure_text_width, truncate_str};
use std::io::Write;

/// Text columns shrink down to this many characters before columns are left out.
const TEXT_WIDTH_MIN: usize = 14;

/// Where text stands in its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Heading of a column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// First line of the heading.
    pub(crate) name: String,
    /// Second line of the heading; empty for none.
    pub(crate) type_name: String,
    /// Of heading and values.
    pub(crate) align: Align,
}

/// A value; `None` is NULL.
pub(crate) type Value = Option<String>;

/// A table in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    /// Headings.
    pub(crate) columns: Vec<Column>,
    /// Values, one per column; without control characters.
    pub(crate) rows: Vec<Vec<Value>>,
    /// Rows were left out before this one.
    pub(crate) gap_before: Option<usize>,
}

/// How lines between cells are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Around everything.
    Full,
    /// None: columns stand apart by two blanks.
    Open,
}

impl Grid {
    /// Writes the table, at most `width` characters wide. Returns how many columns are shown.
    pub(crate) fn write(&self, frame: Frame, width: Option<usize>, colour: bool, out: &mut dyn Write) -> Result<usize> {
        let layout = self.layout(frame, width);
        let shown = layout.iter().filter(|slot| slot.column.is_some()).count();
        let paint = Paint { frame, layout, colour };
        paint.rule(["┌", "┬", "┐"], out)?;
        paint.line(|column| (self.columns[column].name.clone(), Ink::Name), &self.columns, out)?;
        if self.columns.iter().any(|column| !column.type_name.is_empty()) {
            paint.line(|column| (self.columns[column].type_name.clone(), Ink::Faint), &self.columns, out)?;
        }
        paint.rule(["├", "┼", "┤"], out)?;
        for (index, row) in self.rows.iter().enumerate() {
            if self.gap_before == Some(index) {
                paint.line(|_| ("⋮".to_owned(), Ink::Faint), &self.columns, out)?;
            }
            let cell = |column: usize| match &row[column] {
                Some(text) => (text.clone(), Ink::Plain),
                None => ("NULL".to_owned(), Ink::Faint),
            };
            paint.line(cell, &self.columns, out)?;
        }
        paint.rule(["└", "┴", "┘"], out)?;
        Ok(shown)
    }

    /// Which columns to show, and how wide.
    fn layout(&self, frame: Frame, width: Option<usize>) -> Vec<Slot> {
        let natural: Vec<usize> = (0..self.columns.len()).map(|column| self.natural_width(column)).collect();
        let full: Vec<Slot> = natural.iter().enumerate().map(|(column, w)| Slot::new(Some(column), *w)).collect();
        let Some(width) = width else { return full };
        let smallest = |column: usize| match self.columns[column].align {
            Align::Right => natural[column],
            Align::Left => natural[column].min(TEXT_WIDTH_MIN),
        };
        let mut shown = full;
        while shown.len() > 3 && total(frame, shown.iter().map(|slot| slot.column.map_or(1, smallest))) > width {
            drop_middle(&mut shown);
        }
        let room = width.saturating_sub(total(frame, shown.iter().map(|_| 0)));
        shrink(&mut shown, room, |slot| slot.column.map_or(1, smallest));
        shown
    }

    fn natural_width(&self, column: usize) -> usize {
        let heading = &self.columns[column];
        let cells = self.rows.iter().map(|row| row[column].as_deref().map_or(4, measure_text_width));
        let headings = [measure_text_width(&heading.name), measure_text_width(&heading.type_name), 1];
        cells.chain(headings).max().unwrap_or(1)
    }
}

/// One column on the screen; without a `column`, the place of those left out.
#[derive(Clone, Copy, Debug)]
struct Slot {
    column: Option<usize>,
    width: usize,
}

impl Slot {
    fn new(column: Option<usize>, width: usize) -> Slot {
        Slot { column, width }
    }
}

/// Characters of a line with cells of these widths.
fn total(frame: Frame, widths: impl Iterator<Item = usize>) -> usize {
    let (sum, count) = widths.fold((0, 0), |(sum, count), width| (sum + width, count + 1));
    match frame {
        Frame::Full => sum + 3 * count + 1,
        Frame::Open => sum + 2 * count,
    }
}

/// Leaves out one more column, or the first one, putting `…` in its place.
fn drop_middle(shown: &mut Vec<Slot>) {
    match shown.iter().position(|slot| slot.column.is_none()) {
        None => {
            let middle = shown.len() / 2;
            shown[middle] = Slot::new(None, 1);
        }
        Some(gap) => {
            let (left, right) = (gap, shown.len() - gap - 1);
            shown.remove(if left > right { gap - 1 } else { gap + 1 });
        }
    }
}

/// Takes width from the widest that may shrink until all fit into `room`, or none may shrink.
fn shrink(shown: &mut [Slot], room: usize, smallest: impl Fn(&Slot) -> usize) {
    let mut excess = shown.iter().map(|slot| slot.width).sum::<usize>().saturating_sub(room);
    while excess > 0 {
        let can_shrink = |slot: &&mut Slot| slot.width > smallest(slot);
        let Some(widest) = shown.iter_mut().filter(can_shrink).max_by_key(|slot| slot.width) else { return };
        widest.width -= 1;
        excess -= 1;
    }
}

#[derive(Clone, Copy)]
enum Ink {
    Plain,
    Name,
    Faint,
}

struct Paint {
    frame: Frame,
    layout: Vec<Slot>,
    colour: bool,
}

impl Paint {
    fn style(&self, style: Style) -> Style {
        style.force_styling(self.colour)
    }

    fn rule(&self, [left, middle, right]: [&str; 3], out: &mut dyn Write) -> Result<()> {
        if self.frame == Frame::Full {
            let bars: Vec<String> = self.layout.iter().map(|slot| "─".repeat(slot.width + 2)).collect();
            let line = format!("{left}{}{right}", bars.join(middle));
            writeln!(out, "{}", self.style(Style::new().dim()).apply_to(line))?;
        }
        Ok(())
    }

    fn line(&self, cell: impl Fn(usize) -> (String, Ink), columns: &[Column], out: &mut dyn Write) -> Result<()> {
        let bar = self.style(Style::new().dim()).apply_to("│").to_string();
        let mut line = String::new();
        for slot in &self.layout {
            let (text, ink) = slot.column.map_or_else(|| ("…".to_owned(), Ink::Faint), &cell);
            let text = truncate_str(&text, slot.width, "…");
            let padding = " ".repeat(slot.width.saturating_sub(measure_text_width(&text)));
            let style = match ink {
                Ink::Plain => Style::new(),
                Ink::Name => Style::new().bold(),
                Ink::Faint => Style::new().dim(),
            };
            let text = self.style(style).apply_to(text);
            let cell = match slot.column.map(|column| columns[column].align) {
                Some(Align::Right) => format!("{padding}{text}"),
                _ => format!("{text}{padding}"),
            };
            match self.frame {
                Frame::Full => line.push_str(&format!("{bar} {cell} ")),
                Frame::Open => line.push_str(&format!("  {cell}")),
            }
        }
        match self.frame {
            Frame::Full => writeln!(out, "{line}{bar}")?,
            Frame::Open => writeln!(out, "{}", line.trim_end())?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(names: &[&str], row: &[&str]) -> Grid {
        let align = |value: &str| if value.parse::<f64>().is_ok() { Align::Right } else { Align::Left };
        let columns = names.iter().zip(row).map(|(name, value)| Column {
            name: (*name).into(),
            type_name: String::new(),
            align: align(value),
        });
        Grid {
            columns: columns.collect(),
            rows: vec![row.iter().map(|value| Some((*value).to_owned())).collect()],
            gap_before: None,
        }
    }

    fn lines(grid: &Grid, frame: Frame, width: usize) -> Vec<String> {
        let mut out = Vec::new();
        grid.write(frame, Some(width), false, &mut out).unwrap();
        let lines: Vec<String> = String::from_utf8(out).unwrap().lines().map(str::to_owned).collect();
        assert!(lines.iter().all(|line| measure_text_width(line) <= width), "{lines:#?}");
        lines
    }

    #[test]
    fn what_fits_stands_as_it_is() {
        assert_eq!(
            lines(&grid(&["name", "n"], &["Zoë", "12"]), Frame::Full, 80),
            ["┌──────┬────┐", "│ name │  n │", "├──────┼────┤", "│ Zoë  │ 12 │", "└──────┴────┘"]
        );
        assert_eq!(lines(&grid(&["name", "n"], &["Zoë", "12"]), Frame::Open, 80), ["  name   n", "  Zoë   12"]);
    }

    #[test]
    fn the_widest_text_gives_way_first_and_numbers_stay_whole() {
        let text = "a text that is much too long for the screen";
        let shown = lines(&grid(&["short", "long", "n"], &["word", text, "123456789012345678"]), Frame::Full, 50);
        assert_eq!(shown[3], "│ word  │ a text that is m… │ 123456789012345678 │");
    }

    #[test]
    fn columns_in_the_middle_make_room() {
        let names: Vec<String> = (0..30).map(|index| format!("column_{index}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let shown = lines(&grid(&names, &["1"; 30]), Frame::Full, 60);
        assert_eq!(shown[1], "│ column_0 │ column_1 │ … │ column_28 │ column_29 │");
    }

    #[test]
    fn wide_characters_count_twice() {
        let shown = lines(&grid(&["城市"], &["東京都千代田区丸の内一丁目"]), Frame::Full, 20);
        assert_eq!(measure_text_width(&shown[1]), measure_text_width(&shown[3]));
    }
}
