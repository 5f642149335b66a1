//! What the values of a sample look like, and the type that holds them all.

use super::cursor::{Cursor, Kind, Syntax};
use crate::value::guess::Guess;
use arrow::datatypes::{DataType, Field, Fields};
use std::collections::HashMap;
use std::sync::Arc;

/// More keys than this in nested objects make a map and not a struct; it is kept as JSON text.
const NESTED_KEYS_LIMIT: usize = 1000;

/// The values seen at one place.
#[derive(Debug, Default)]
pub(super) struct Shape {
    booleans: u64,
    objects: u64,
    arrays: u64,
    strings: u64,
    numbers: u64,
    /// Strings that JSON uses for lack of a number: NaN and the infinities.
    number_words: u64,
    number: Guess,
    string: Guess,
    keys: Vec<(String, Shape)>,
    places: HashMap<String, usize>,
    element: Option<Box<Shape>>,
}

impl Shape {
    /// Takes the value at the cursor into account. Its text has been checked before.
    pub(super) fn add(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Syntax> {
        match cursor.kind()? {
            Kind::Null => drop(cursor.word()?),
            Kind::Boolean => {
                self.booleans += 1;
                cursor.word()?;
            }
            Kind::Number => {
                self.numbers += 1;
                self.number.add_value(cursor.number()?);
            }
            Kind::String => {
                let text = cursor.string()?;
                if is_number_word(&text) {
                    self.number_words += 1;
                } else {
                    self.strings += 1;
                }
                if !self.string.is_text() {
                    self.string.add_value(&text);
                }
            }
            Kind::Array => {
                self.arrays += 1;
                let element = self.element.get_or_insert_default();
                let mut is_first = true;
                while cursor.next_element(&mut is_first)? {
                    element.add(cursor)?;
                }
            }
            Kind::Object => {
                self.objects += 1;
                let mut is_first = true;
                let mut position = 0;
                while let Some(key) = cursor.next_key(&mut is_first)? {
                    let key = String::from_utf8_lossy(&key);
                    // Objects of one kind have their keys in one order.
                    let place = match self.keys.get(position) {
                        Some((known, _)) if *known == key => position,
                        _ => self.place_of(&key),
                    };
                    position = place + 1;
                    self.keys[place].1.add(cursor)?;
                }
            }
        }
        Ok(())
    }

    fn place_of(&mut self, key: &str) -> usize {
        if let Some(place) = self.places.get(key) {
            return *place;
        }
        let place = self.keys.len();
        self.keys.push((key.to_string(), Self::default()));
        self.places.insert(key.to_string(), place);
        place
    }

    /// The keys that objects had, each with its type.
    pub(super) fn fields(&self) -> Fields {
        self.keys.iter().map(|(key, shape)| Field::new(key, shape.data_type(), true)).collect()
    }

    /// The type of all values; Null where there was none.
    fn data_type(&self) -> DataType {
        let strings = self.strings + self.number_words;
        match (self.booleans, self.numbers, strings, self.arrays, self.objects) {
            (0, 0, 0, 0, 0) => DataType::Null,
            (_, 0, 0, 0, 0) => DataType::Boolean,
            (0, 1.., _, 0, 0) if self.strings == 0 => match self.number.data_type() {
                _ if self.number_words > 0 => DataType::Float64,
                DataType::Utf8 => DataType::Float64,
                number => number,
            },
            (0, 0, _, 0, 0) => match self.string.data_type() {
                temporal if temporal.is_temporal() => temporal,
                _ => DataType::Utf8,
            },
            (0, 0, 0, _, 0) => {
                let element = self.element.as_ref().map_or(DataType::Null, |element| element.data_type());
                DataType::List(Arc::new(Field::new_list_field(element, true)))
            }
            (0, 0, 0, 0, _) if !self.keys.is_empty() && self.keys.len() <= NESTED_KEYS_LIMIT => {
                DataType::Struct(self.fields())
            }
            _ => DataType::Utf8,
        }
    }
}

/// The strings that stand for numbers which JSON cannot write.
pub(super) fn is_number_word(text: &[u8]) -> bool {
    matches!(text, b"NaN" | b"Infinity" | b"-Infinity")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql_type;

    fn types(records: &[&str]) -> String {
        let mut shape = Shape::default();
        for record in records {
            shape.add(&mut Cursor::new(record.as_bytes())).unwrap();
        }
        let print = |field: &Arc<Field>| format!("{} {}", field.name(), sql_type::name(field.data_type()));
        shape.fields().iter().map(print).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn one_type_holds_all_values_of_a_key() {
        assert_eq!(types(&["{\"a\":1,\"b\":true}", "{\"b\":null,\"a\":2.5}"]), "a DOUBLE, b BOOLEAN");
        assert_eq!(types(&["{\"a\":1}", "{\"a\":\"x\"}"]), "a VARCHAR");
        assert_eq!(types(&["{\"a\":\"1\"}"]), "a VARCHAR");
        assert_eq!(types(&["{\"a\":\"2024-01-01\"}"]), "a DATE");
        assert_eq!(types(&["{\"a\":\"2024-01-01T00:00:00Z\"}"]), "a TIMESTAMPTZ");
        assert_eq!(types(&["{\"a\":1.5}", "{\"a\":\"NaN\"}"]), "a DOUBLE");
        assert_eq!(types(&["{\"a\":[1,2]}", "{\"a\":[]}", "{\"a\":[null,1.5]}"]), "a DOUBLE[]");
        assert_eq!(types(&["{\"a\":{\"x\":1}}", "{\"a\":{\"y\":\"z\"}}"]), "a STRUCT(x BIGINT, y VARCHAR)");
        assert_eq!(types(&["{\"a\":{}}"]), "a VARCHAR");
        assert_eq!(types(&["{\"a\":18446744073709551615}"]), "a DECIMAL(38,0)");
        assert_eq!(types(&["{\"a\":-0}", "{\"a\":1}"]), "a DOUBLE");
    }
}
