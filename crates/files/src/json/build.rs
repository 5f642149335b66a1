//! Filling columns from JSON values whose text has been checked.
//!
//! A [`Node`] is a column, or inside a struct or list a part of one. Every value adds exactly one entry to its node,
//! also one that does not fit: it adds NULL and a [`Misfit`], so that columns stay in step and the caller can drop the
//! row or fail.

use super::cursor::{Cursor, Kind, Syntax, check};
use crate::error::excerpt;
use crate::sql_type;
use crate::value::column::{Patterns, TextColumn, column, misfit};
use arrow::array::{ArrayRef, ListArray, NullBufferBuilder, StructArray, new_null_array};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, FieldRef, Fields};
use std::collections::HashMap;
use std::sync::Arc;

/// A value that does not fit its column.
#[derive(Debug, Clone)]
pub(super) struct Misfit {
    /// The keys that lead to it, joined by points.
    pub(super) key: String,
    /// Its text, shortened.
    pub(super) value: String,
    /// What is wrong.
    pub(super) problem: String,
}

/// One column, or a part of a nested one.
pub(super) enum Node {
    Scalar {
        data_type: DataType,
        values: Box<dyn TextColumn>,
    },
    List {
        element_field: FieldRef,
        element: Box<Node>,
        ends: Vec<i32>,
        element_count: usize,
        validity: NullBufferBuilder,
    },
    Struct(Object),
}

/// A struct column, or all columns of a file.
pub(super) struct Object {
    fields: Fields,
    nodes: Vec<Node>,
    /// Per key its node, or `None` for a key that is known and not wanted.
    places: HashMap<Vec<u8>, Option<usize>>,
    /// The keys in the order of the last object, each with its place, which the next one most likely has too.
    order: Vec<(Vec<u8>, Option<usize>)>,
    ignores_unknown_keys: bool,
    /// Per node, the number of the last object that had it.
    last_seen: Vec<u64>,
    object_count: u64,
    validity: NullBufferBuilder,
}

impl Node {
    /// A node for `data_type`, or `None` where JSON cannot fill it.
    pub(super) fn new(data_type: &DataType, patterns: &Patterns, ignores_unknown_keys: bool) -> Option<Self> {
        match data_type {
            DataType::List(field) => Some(Self::List {
                element_field: Arc::clone(field),
                element: Box::new(Self::new(field.data_type(), patterns, ignores_unknown_keys)?),
                ends: vec![0],
                element_count: 0,
                validity: NullBufferBuilder::new(0),
            }),
            DataType::Struct(fields) => Object::new(fields, patterns, ignores_unknown_keys).map(Self::Struct),
            _ => Some(Self::Scalar { data_type: data_type.clone(), values: column(data_type, patterns)? }),
        }
    }

    /// Adds the value at the cursor.
    pub(super) fn append(
        &mut self,
        cursor: &mut Cursor<'_>,
        path: &str,
        misfits: &mut Vec<Misfit>,
    ) -> Result<(), Syntax> {
        let kind = cursor.kind()?;
        if kind == Kind::Null {
            cursor.word()?;
            self.append_null();
            return Ok(());
        }
        match (&mut *self, kind) {
            (Self::List { element, ends, element_count, validity, .. }, Kind::Array) => {
                let mut is_first = true;
                while cursor.next_element(&mut is_first)? {
                    element.append(cursor, path, misfits)?;
                    *element_count += 1;
                }
                ends.push(i32::try_from(*element_count).unwrap_or(i32::MAX));
                validity.append_non_null();
            }
            (Self::Struct(object), Kind::Object) => object.append(cursor, path, misfits)?,
            (Self::Scalar { data_type, values }, _) => {
                let text = match kind {
                    Kind::String => cursor.string()?,
                    _ => cursor.skip(0)?.into(),
                };
                if !values.push(&text) {
                    values.push_null();
                    let problem = misfit(&text, data_type);
                    misfits.push(Misfit { key: path.to_string(), value: excerpt(&text), problem });
                }
            }
            (_, _) => {
                let value = excerpt(cursor.skip(0)?);
                let problem = format!("not of type {}", sql_type::name(&self.data_type()));
                misfits.push(Misfit { key: path.to_string(), value, problem });
                self.append_null();
            }
        }
        Ok(())
    }

    pub(super) fn append_null(&mut self) {
        match self {
            Self::Scalar { values, .. } => values.push_null(),
            Self::List { ends, validity, .. } => {
                ends.push(ends.last().copied().unwrap_or(0));
                validity.append_null();
            }
            Self::Struct(object) => object.append_null(),
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Scalar { data_type, .. } => data_type.clone(),
            Self::List { element_field, .. } => DataType::List(Arc::clone(element_field)),
            Self::Struct(object) => DataType::Struct(object.fields.clone()),
        }
    }

    /// The entries so far as an array; the node is empty afterwards.
    pub(super) fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Scalar { values, .. } => values.finish(),
            Self::List { element_field, element, ends, element_count, validity } => {
                *element_count = 0;
                let ends = std::mem::replace(ends, vec![0]);
                let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
                Arc::new(ListArray::new(Arc::clone(element_field), offsets, element.finish(), validity.finish()))
            }
            Self::Struct(object) => {
                let row_count = object.validity.len();
                let (arrays, nulls) = object.finish();
                if object.fields.is_empty() {
                    return new_null_array(&DataType::Struct(Fields::empty()), row_count);
                }
                Arc::new(StructArray::new(object.fields.clone(), arrays, nulls))
            }
        }
    }
}

impl Object {
    /// A struct of `fields`, or `None` where JSON cannot fill one of them.
    pub(super) fn new(fields: &Fields, patterns: &Patterns, ignores_unknown_keys: bool) -> Option<Self> {
        let node = |field: &FieldRef| Node::new(field.data_type(), patterns, ignores_unknown_keys);
        let nodes = fields.iter().map(node).collect::<Option<Vec<_>>>()?;
        let place = |(place, field): (usize, &FieldRef)| (field.name().as_bytes().to_vec(), Some(place));
        Some(Self {
            fields: fields.clone(),
            places: fields.iter().enumerate().map(place).collect(),
            order: Vec::new(),
            last_seen: vec![0; nodes.len()],
            nodes,
            ignores_unknown_keys,
            object_count: 0,
            validity: NullBufferBuilder::new(0),
        })
    }

    /// Lets `key` fill field `place`, or none: then it is known, and passed over.
    pub(super) fn know(&mut self, key: &str, place: Option<usize>) {
        self.places.insert(key.as_bytes().to_vec(), place);
    }

    /// Adds the object at the cursor.
    pub(super) fn append(
        &mut self,
        cursor: &mut Cursor<'_>,
        path: &str,
        misfits: &mut Vec<Misfit>,
    ) -> Result<(), Syntax> {
        self.object_count += 1;
        let mut is_first = true;
        let mut position = 0;
        while let Some(key) = cursor.next_key(&mut is_first)? {
            let place = match self.order.get(position) {
                Some((known, place)) if **known == *key => Some(*place),
                _ => {
                    let place = self.places.get(key.as_ref()).copied();
                    if let Some(place) = place {
                        self.order.truncate(position);
                        self.order.push((key.to_vec(), place));
                    }
                    place
                }
            };
            position += usize::from(place.is_some());
            let key_path = || join(path, &String::from_utf8_lossy(&key));
            match place {
                Some(Some(place)) if self.last_seen[place] == self.object_count => {
                    let value = excerpt(cursor.skip(0)?);
                    misfits.push(Misfit { key: key_path(), value, problem: "the key comes twice".to_string() });
                }
                Some(Some(place)) => {
                    self.last_seen[place] = self.object_count;
                    match &mut self.nodes[place] {
                        // The path is needed only for messages, and of a scalar only then.
                        node @ Node::Scalar { .. } => {
                            let before = misfits.len();
                            node.append(cursor, "", misfits)?;
                            misfits[before..].iter_mut().for_each(|misfit| misfit.key = key_path());
                        }
                        node => node.append(cursor, &key_path(), misfits)?,
                    }
                }
                Some(None) => drop(cursor.skip(0)?),
                None => {
                    let value = excerpt(cursor.skip(0)?);
                    if !self.ignores_unknown_keys {
                        let problem = "no column has this key".to_string();
                        misfits.push(Misfit { key: key_path(), value, problem });
                    }
                }
            }
        }
        for (node, last_seen) in self.nodes.iter_mut().zip(&self.last_seen) {
            if *last_seen != self.object_count {
                node.append_null();
            }
        }
        self.validity.append_non_null();
        Ok(())
    }

    /// Adds an entry of NULLs.
    pub(super) fn append_null(&mut self) {
        self.nodes.iter_mut().for_each(Node::append_null);
        self.validity.append_null();
    }

    /// The columns so far, and which entries are objects at all; it is empty afterwards.
    pub(super) fn finish(&mut self) -> (Vec<ArrayRef>, Option<NullBuffer>) {
        (self.nodes.iter_mut().map(Node::finish).collect(), self.validity.finish())
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}

/// A column of nested values that are written as JSON in the fields of a CSV file; `None` for types that are not nested.
pub(crate) fn text_column(data_type: &DataType, patterns: &Patterns) -> Option<Box<dyn TextColumn>> {
    let node = Node::new(data_type, patterns, false).filter(|_| data_type.is_nested())?;
    Some(Box::new(NestedText { node, has_placeholder: false }))
}

/// Nested values from text.
struct NestedText {
    node: Node,
    /// Whether the last text did not fit and has left an entry all the same.
    has_placeholder: bool,
}

impl TextColumn for NestedText {
    fn push(&mut self, text: &[u8]) -> bool {
        if check(text).is_err() {
            return false;
        }
        let mut misfits = Vec::new();
        let is_read = self.node.append(&mut Cursor::new(text), "", &mut misfits).is_ok();
        self.has_placeholder = !misfits.is_empty();
        is_read && misfits.is_empty()
    }

    fn push_null(&mut self) {
        if !std::mem::take(&mut self.has_placeholder) {
            self.node.append_null();
        }
    }

    fn finish(&mut self) -> ArrayRef {
        self.node.finish()
    }
}
