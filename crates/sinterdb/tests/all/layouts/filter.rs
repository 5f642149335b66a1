//! Conditions, as SQL and over the model.

use super::cell::{Cell, Kind};
use super::{Column, Row};
use rand::Rng;
use rand::rngs::SmallRng;
use std::cmp::Ordering;

#[derive(Clone, Debug)]
pub(super) enum Filter {
    All,
    Test(usize, Test),
    Not(Box<Filter>),
    And(Box<Filter>, Box<Filter>),
    Or(Box<Filter>, Box<Filter>),
}

#[derive(Clone, Debug)]
pub(super) enum Test {
    Compare(&'static str, Cell),
    Between(Cell, Cell),
    In(Vec<Cell>),
    IsNull,
    IsNotNull,
    StartsWith(String),
    Contains(String),
}

impl Filter {
    /// Over any columns; constants come mostly out of the rows.
    pub(super) fn random(random: &mut SmallRng, columns: &[Column], rows: &[Row]) -> Filter {
        let test = |random: &mut SmallRng| {
            let index = random.random_range(0..columns.len());
            Filter::Test(index, Test::random(random, columns[index].kind, index, rows))
        };
        match random.random_range(0..12) {
            0 => Filter::All,
            1..8 => test(random),
            8 => Filter::Not(Box::new(test(random))),
            9 | 10 => Filter::And(Box::new(test(random)), Box::new(test(random))),
            _ => Filter::Or(Box::new(test(random)), Box::new(test(random))),
        }
    }

    pub(super) fn sql(&self, columns: &[Column]) -> String {
        match self {
            Filter::All => "true".to_owned(),
            Filter::Test(index, test) => test.sql(&columns[*index]),
            Filter::Not(one) => format!("NOT ({})", one.sql(columns)),
            Filter::And(one, two) => format!("({}) AND ({})", one.sql(columns), two.sql(columns)),
            Filter::Or(one, two) => format!("({}) OR ({})", one.sql(columns), two.sql(columns)),
        }
    }

    pub(super) fn passes(&self, row: &Row) -> bool {
        self.value(row) == Some(true)
    }

    /// `None` is unknown.
    fn value(&self, row: &Row) -> Option<bool> {
        match self {
            Filter::All => Some(true),
            Filter::Test(index, test) => test.value(&row[*index]),
            Filter::Not(one) => one.value(row).map(|value| !value),
            Filter::And(one, two) => match (one.value(row), two.value(row)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (one, two) => Some(one? && two?),
            },
            Filter::Or(one, two) => match (one.value(row), two.value(row)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (one, two) => Some(one? || two?),
            },
        }
    }
}

impl Test {
    fn random(random: &mut SmallRng, kind: Kind, index: usize, rows: &[Row]) -> Test {
        if kind.is_list() {
            return if random.random_bool(0.5) { Test::IsNull } else { Test::IsNotNull };
        }
        let constant = |random: &mut SmallRng| loop {
            let cell = match rows.is_empty() || random.random_bool(0.2) {
                true => kind.cell(random.random_range(-50..50), super::Style::random(random)),
                false => rows[random.random_range(0..rows.len())][index].clone(),
            };
            if !cell.is_null() || random.random_bool(0.3) {
                break cell;
            }
        };
        let one = constant(random);
        let part = |random: &mut SmallRng| {
            let Cell::Bytes(bytes) = &one else { return None };
            let chars: Vec<char> = std::str::from_utf8(bytes).ok()?.chars().collect();
            let (from, to) = (random.random_range(0..=chars.len()), random.random_range(0..=chars.len()));
            Some((chars[..to].iter().collect::<String>(), chars[from.min(to)..to.max(from)].iter().collect::<String>()))
        };
        match random.random_range(0..12) {
            0 => Test::IsNull,
            1 => Test::IsNotNull,
            2 | 3 => Test::Between(constant(random), constant(random)),
            4 | 5 => Test::In((0..random.random_range(1..6)).map(|_| constant(random)).collect()),
            6 | 7 if kind == Kind::Text => match part(random) {
                None => Test::IsNull,
                Some((start, _)) if random.random_bool(0.7) => Test::StartsWith(start),
                Some((_, inner)) => Test::Contains(inner),
            },
            _ => Test::Compare(["=", "=", "<>", "<", "<=", ">", ">="][random.random_range(0..7)], one),
        }
    }

    fn sql(&self, column: &Column) -> String {
        let (name, literal) = (&column.name, |cell: &Cell| column.kind.literal(cell));
        match self {
            Test::Compare(operator, cell) => format!("{name} {operator} {}", literal(cell)),
            Test::Between(from, to) => format!("{name} BETWEEN {} AND {}", literal(from), literal(to)),
            Test::In(cells) => format!("{name} IN ({})", cells.iter().map(literal).collect::<Vec<_>>().join(", ")),
            Test::IsNull => format!("{name} IS NULL"),
            Test::IsNotNull => format!("{name} IS NOT NULL"),
            Test::StartsWith(start) => format!("{name} LIKE '{}%'", start.replace('\'', "''")),
            Test::Contains(inner) => format!("{name} LIKE '%{}%'", inner.replace('\'', "''")),
        }
    }

    fn value(&self, cell: &Cell) -> Option<bool> {
        let text = |cell: &Cell| match cell {
            Cell::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        };
        match self {
            Test::Compare(operator, constant) => {
                let order = cell.compare(constant)?;
                Some(match *operator {
                    "=" => order == Ordering::Equal,
                    "<>" => order != Ordering::Equal,
                    "<" => order == Ordering::Less,
                    "<=" => order != Ordering::Greater,
                    ">" => order == Ordering::Greater,
                    _ => order != Ordering::Less,
                })
            }
            Test::Between(from, to) => {
                let above = cell.compare(from).map(|order| order != Ordering::Less);
                let below = cell.compare(to).map(|order| order != Ordering::Greater);
                match (above, below) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (above, below) => Some(above? && below?),
                }
            }
            Test::In(cells) => {
                let equal: Vec<Option<bool>> =
                    cells.iter().map(|one| cell.compare(one).map(|order| order == Ordering::Equal)).collect();
                match equal.contains(&Some(true)) {
                    true => Some(true),
                    false => equal.iter().all(Option::is_some).then_some(false),
                }
            }
            Test::IsNull => Some(cell.is_null()),
            Test::IsNotNull => Some(!cell.is_null()),
            Test::StartsWith(start) => text(cell).map(|text| text.starts_with(start)),
            Test::Contains(inner) => text(cell).map(|text| text.contains(inner)),
        }
    }
}
