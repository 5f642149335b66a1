//! Random joins, up to three of them in a row, against pairs of rows found by looking at keys one by one.

use crate::support::aggregates::holds;
use crate::support::exprs;
use crate::support::joins::{counted, grouped, identity, scan, unlimited};
use crate::support::random::{self, Random};
use crate::support::table::MemoryTable;
use crate::support::{choice_lists, model, random_table, rows_of, rows_spilled};
use sinter_codec::{Choice, CompareOp, Scalar};
use sinter_exec::{Expr, Join, JoinKind, LogicalType, Output, Pipeline, Result, Step};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

const KINDS: [JoinKind; 11] = [
    JoinKind::Inner,
    JoinKind::Left,
    JoinKind::Single,
    JoinKind::Semi,
    JoinKind::Anti,
    JoinKind::NotIn,
    JoinKind::Mark,
    JoinKind::Right,
    JoinKind::Full,
    JoinKind::RightSemi,
    JoinKind::RightAnti,
];

/// So many rows may come out of a query of the model.
const ROWS_MAX: usize = 30_000;

/// A join as the model does it: who keeps which rows, told row by row.
struct Model<'a> {
    kind: JoinKind,
    keys: &'a [usize],
    nulls_are_equal: bool,
    /// Over columns of these types.
    condition: Option<(&'a Expr, &'a [LogicalType])>,
    /// Keys and payload.
    others: &'a [(Vec<Scalar>, Vec<Scalar>)],
    payload_count: usize,
}

impl Model<'_> {
    /// What comes out when rows of so many columns meet the others; `None` where that is too much, or no answer.
    fn joined(&self, rows: Vec<Vec<Scalar>>, width: usize) -> Option<Vec<Vec<Scalar>>> {
        let mut by_key: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (other, (key, _)) in self.others.iter().enumerate() {
            if let Some(key) = identity(key, self.nulls_are_equal) {
                by_key.entry(key).or_default().push(other);
            }
        }
        if self.kind == JoinKind::Single && by_key.values().any(|others| others.len() > 1) {
            return None;
        }
        let has_null = self.others.iter().any(|(key, _)| key.contains(&Scalar::Null));
        let nulls = |count: usize| vec![Scalar::Null; count];
        let payload = |other: usize| self.others[other].1.clone();
        let mut has_partner = vec![false; self.others.len()];
        let mut all = Vec::new();
        for row in rows {
            let key: Vec<Scalar> = self.keys.iter().map(|&key| row[key].clone()).collect();
            let partners = identity(&key, self.nulls_are_equal).and_then(|key| by_key.get(&key));
            let mut partners = partners.cloned().unwrap_or_default();
            if let Some((condition, types)) = self.condition {
                let is_true = |row: &[Scalar]| model::evaluate(condition, row, types) == Ok(Scalar::Int(1));
                partners.retain(|&other| is_true(&[row.clone(), payload(other)].concat()));
            }
            partners.iter().for_each(|&other| has_partner[other] = true);
            let pairs = partners.iter().map(|&other| [row.clone(), payload(other)].concat());
            match self.kind {
                JoinKind::Inner | JoinKind::Right => all.extend(pairs),
                JoinKind::Left | JoinKind::Full | JoinKind::Single => match partners.is_empty() {
                    true => all.push([row, nulls(self.payload_count)].concat()),
                    false => all.extend(pairs),
                },
                JoinKind::Mark => {
                    // Only of the last column is it known which value it has.
                    let mark = if partners.is_empty() { Scalar::Null } else { Scalar::Int(1) };
                    all.push([row, nulls(self.payload_count.saturating_sub(1)), vec![mark]].concat());
                }
                JoinKind::Semi if partners.is_empty() => {}
                JoinKind::Anti | JoinKind::NotIn if !partners.is_empty() => {}
                JoinKind::NotIn if has_null || (key.contains(&Scalar::Null) && !self.others.is_empty()) => {}
                // Columns that only the condition sees are numbered, too.
                JoinKind::Semi | JoinKind::Anti if self.condition.is_some() => {
                    all.push([row, nulls(self.payload_count)].concat());
                }
                JoinKind::Semi | JoinKind::Anti | JoinKind::NotIn => all.push(row),
                JoinKind::RightSemi | JoinKind::RightAnti => {}
            }
            if all.len() > ROWS_MAX {
                return None;
            }
        }
        let alone = (0..self.others.len()).filter(|&other| match self.kind {
            JoinKind::Right | JoinKind::Full | JoinKind::RightAnti => !has_partner[other],
            JoinKind::RightSemi => has_partner[other],
            _ => false,
        });
        all.extend(alone.map(|other| [nulls(width), payload(other)].concat()));
        Some(all)
    }
}

#[test]
fn all_kinds_all_keys_all_schemes() {
    let (mut compared, mut spilled, mut rows_seen, mut most, mut asked_early) = (0, 0, 0, 0, 0);
    // Of which a query without other joins was spilled.
    let mut kinds_spilled: Vec<JoinKind> = Vec::new();
    for (index, choices) in choice_lists().iter().enumerate() {
        for seed in 0..5u64 {
            let seed = seed * 100 + index as u64;
            let mut random = Random(seed);
            let row_counts = [*random.pick(&[0, 1, 900, 2600]), *random.pick(&[0, 1, 40, 700]), *random.pick(&[3, 50])];
            let tables: Vec<_> = row_counts
                .iter()
                .map(|&rows| {
                    let (table, alive) = random_table(&mut random, rows, (seed % 3) as usize, choices);
                    (Arc::new(table), alive)
                })
                .collect();
            for query in 0..12 {
                let mut types = exprs::types();
                let scan_types = types.clone();
                let mut pipeline = scan(&tables[0].0, types.len(), Vec::new());
                if random.chance(30) {
                    pipeline.filter.push(exprs::simple_condition(&mut random));
                }
                let passing = tables[0].1.iter().filter(|row| pipeline.filter.iter().all(|part| holds(part, row)));
                let mut expected: Option<Vec<Vec<Scalar>>> = Some(passing.cloned().collect());
                let mut texts = Vec::new();
                // What a semi join's condition saw is not to be asked for afterwards.
                let mut hidden: Vec<usize> = Vec::new();
                // What each join brought.
                let mut joined: Vec<Range<usize>> = Vec::new();
                for _ in 0..1 + random.below(3) {
                    let (table, alive) = &tables[random.below(3)];
                    let kind = *random.pick(&KINDS);
                    let is_not_in = kind == JoinKind::NotIn;
                    let nulls_are_equal = !is_not_in && random.chance(15);
                    let (mut keys, mut build_keys) = (Vec::new(), Vec::new());
                    let keys_max = *random.pick(&[1, 1, 3]);
                    let key_count = match is_not_in {
                        true => 1,
                        // Each with each.
                        false if random.chance(5) => 0,
                        false => 1 + random.below(keys_max),
                    };
                    for _ in 0..key_count {
                        let key = random.below(types.len());
                        if hidden.contains(&key) {
                            continue;
                        }
                        let same: Vec<usize> =
                            (0..scan_types.len()).filter(|&at| scan_types[at] == types[key]).collect();
                        keys.push(key);
                        build_keys.push(*random.pick(&same));
                    }
                    let filter: Vec<Expr> =
                        if random.chance(50) { Vec::new() } else { vec![exprs::simple_condition(&mut random)] };
                    let payload: Vec<usize> = (0..random.below(4)).map(|_| random.below(scan_types.len())).collect();
                    let may_ask = !matches!(kind, JoinKind::Inner | JoinKind::Single | JoinKind::NotIn);
                    // Between a number of ours and one of theirs, where there are two of the same type.
                    let mut pairs_of_columns = Vec::new();
                    for (ours, ty) in types.iter().enumerate().filter(|(ours, _)| !hidden.contains(ours)) {
                        let same = payload.iter().enumerate().filter(|(_, theirs)| scan_types[**theirs] == *ty);
                        pairs_of_columns.extend(same.map(|(place, _)| (ours, types.len() + place)));
                    }
                    let condition = (may_ask && !pairs_of_columns.is_empty() && random.chance(50)).then(|| {
                        let (ours, theirs) = *random.pick(&pairs_of_columns);
                        let op = *random.pick(&[CompareOp::Less, CompareOp::NotEqual, CompareOp::Equal]);
                        Expr::Compare(op, Box::new(Expr::Column(ours)), Box::new(Expr::Column(theirs)))
                    });
                    let others: Vec<_> = alive
                        .iter()
                        .filter(|row| filter.iter().all(|part| holds(part, row)))
                        .map(|row| {
                            let pick =
                                |columns: &[usize]| columns.iter().map(|&at| row[at].clone()).collect::<Vec<_>>();
                            let mark = (kind == JoinKind::Mark).then_some(Scalar::Int(1));
                            (pick(&build_keys), pick(&payload).into_iter().chain(mark).collect())
                        })
                        .collect();
                    if is_not_in && keys.len() != 1 {
                        continue;
                    }
                    let mark = (kind == JoinKind::Mark).then_some(LogicalType::Boolean);
                    let payload_types = payload.iter().map(|&column| scan_types[column].clone()).chain(mark);
                    let payload_types: Vec<LogicalType> = payload_types.collect();
                    let both_types: Vec<LogicalType> = types.iter().chain(&payload_types).cloned().collect();
                    let model = Model {
                        kind,
                        keys: &keys,
                        nulls_are_equal,
                        condition: condition.as_ref().map(|condition| (condition, &both_types[..])),
                        others: &others,
                        payload_count: payload_types.len(),
                    };
                    expected = expected.and_then(|rows| model.joined(rows, types.len()));
                    let mut columns: Vec<Expr> =
                        build_keys.iter().chain(&payload).map(|&column| Expr::Column(column)).collect();
                    if kind == JoinKind::Mark {
                        columns.push(exprs::int(1, LogicalType::Boolean));
                    }
                    let build = Box::new(Pipeline { filter, ..scan(table, scan_types.len(), columns) });
                    let equal = if nulls_are_equal { "=NULL=" } else { "=" };
                    texts.push(format!(
                        "{kind:?} {keys:?} {equal} {build_keys:?} payload {payload:?} {:?}, {condition:?}",
                        build.filter
                    ));
                    let keys = keys.into_iter().map(Expr::Column).collect();
                    let join = Join { kind, build, keys, nulls_are_equal, condition };
                    let adds_columns = join.adds_columns();
                    pipeline.steps.push(Step::Join(join));
                    if adds_columns {
                        if !kind.has_payload() || kind == JoinKind::Mark {
                            hidden.extend(types.len()..types.len() + payload.len());
                        }
                        joined.push(types.len()..types.len() + payload_types.len());
                        types.extend(payload_types);
                    }
                    if random.chance(25) {
                        let condition = exprs::simple_condition(&mut random);
                        expected = expected
                            .map(|rows| rows.into_iter().filter(|row| holds(&condition, row)).collect::<Vec<_>>());
                        texts.push(format!("{condition:?}"));
                        pipeline.steps.push(Step::Filter(condition));
                    }
                }
                let Some(expected) = expected else { continue };
                let mut outputs: Vec<usize> = match random.below(3) {
                    0 => (0..types.len()).collect(),
                    _ => (0..random.below(5)).map(|_| random.below(types.len())).collect(),
                };
                outputs.retain(|column| !hidden.contains(column));
                // Keys that one join brought, as a rule.
                let of_one = joined.get(random.below(joined.len().max(1))).cloned().unwrap_or(0..0);
                let mut keys: Vec<usize> = of_one.filter(|_| random.chance(60)).collect();
                keys.extend((0..types.len()).filter(|_| random.chance(1)));
                keys.retain(|column| !hidden.contains(column));
                let grouped = (!keys.is_empty()).then(|| grouped(&pipeline, &keys, &types, 1 + random.below(3)));
                let wanted = counted(expected.iter().map(|row| keys.iter().map(|&key| row[key].clone()).collect()));
                pipeline.output = Output::Rows(outputs.iter().map(|&column| Expr::Column(column)).collect());
                let output_types: Vec<LogicalType> = outputs.iter().map(|&column| types[column].clone()).collect();
                let expected: Vec<Vec<Scalar>> = expected
                    .into_iter()
                    .map(|row| outputs.iter().map(|&column| row[column].clone()).collect())
                    .collect();
                let context = || format!("seed {seed}, query {query}, {choices:?}\n{}", texts.join("\n"));
                if let Some(found) = grouped {
                    let found = found.unwrap_or_else(|error| panic!("{error}\n{}", context()));
                    assert!(found == wanted, "other groups by {keys:?}: {found:?} {wanted:?}\n{}", context());
                }
                let asked = pipeline.clone().start_measured().expect("ours");
                // One partner at most is wanted of some.
                if asked.prepare(1, &unlimited()).is_ok() {
                    asked_early += usize::from(asked.explain().to_string().contains(" of a join, in a "));
                }
                let only_join = match &pipeline.steps[..] {
                    [Step::Join(join)] => Some(join.kind),
                    _ => None,
                };
                let (found, was_spilled) = match random.chance(50) {
                    true => rows_spilled(&pipeline, &output_types, 1 + random.below(3), &mut random),
                    false => (rows_of(pipeline, &output_types, 1 + random.below(3)), false),
                };
                spilled += usize::from(was_spilled);
                kinds_spilled.extend(only_join.filter(|_| was_spilled));
                let found = found.unwrap_or_else(|error| panic!("{error}\n{}", context()));
                assert_eq!(found.len(), expected.len(), "{}", context());
                let sorted = |rows: Vec<Vec<Scalar>>| {
                    let mut texts: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
                    texts.sort_unstable();
                    texts
                };
                rows_seen += found.len();
                most = most.max(found.len());
                compared += 1;
                assert!(sorted(found) == sorted(expected), "other rows\n{}", context());
            }
        }
    }
    assert!(
        compared > 300 && spilled > 80 && rows_seen > 100_000 && most > 5000 && asked_early > 10,
        "{compared} queries, {spilled} of them spilled, {asked_early} asked early, {rows_seen} rows, {most} at most"
    );
    for kind in KINDS {
        // One NULL among all of theirs answers for all of ours: no part of them can.
        assert_eq!(kinds_spilled.contains(&kind), kind != JoinKind::NotIn, "{kind:?} among those spilled");
    }
}

#[test]
fn models_know_what_they_compare() {
    let rows = vec![vec![Scalar::Int(1)], vec![Scalar::Null], vec![Scalar::Int(2)]];
    let others = [(vec![Scalar::Int(1)], vec![]), (vec![Scalar::Null], vec![]), (vec![Scalar::Int(1)], vec![])];
    let count = |kind, nulls_are_equal| {
        let model = Model { kind, keys: &[0], nulls_are_equal, condition: None, others: &others, payload_count: 0 };
        model.joined(rows.clone(), 1).map(|rows| rows.len())
    };
    let counts = |equal| KINDS.map(|kind| count(kind, equal));
    let found = counts(false).map(|count| count.unwrap_or(99));
    assert_eq!(found, [2, 4, 99, 1, 2, 0, 3, 3, 5, 2, 1]);
    let found = counts(true).map(|count| count.unwrap_or(99));
    assert_eq!(found, [3, 4, 99, 2, 1, 0, 3, 3, 4, 3, 0]);
    assert!(model::same(&Scalar::Null, &Scalar::Null));
}

#[test]
fn several_integer_keys() -> Result<()> {
    let types = [
        LogicalType::Int64,
        LogicalType::Int32,
        LogicalType::UInt64,
        LogicalType::Decimal { precision: 38, scale: 0 },
        LogicalType::Int64,
    ];
    // The first is nearly unique; of the third the greatest is beyond 64 bits with a sign; the last says which row it is.
    let table = |random: &mut Random, rows: usize, beyond: i128| {
        let mut columns = vec![Vec::new(); types.len()];
        for row in 0..rows {
            let lead = random.between(0, rows as i128 / 3);
            let wide = if random.chance(5) { beyond } else { random.between(0, 3) };
            let values = [lead, random.between(-4, 4), u64::MAX as i128 - random.between(0, 2), wide - 2, row as i128];
            for (place, (column, value)) in columns.iter_mut().zip(values).enumerate() {
                let is_null = place < 4 && random.chance(4);
                column.push(if is_null { Scalar::Null } else { Scalar::Int(value) });
            }
        }
        let arrays: Vec<_> =
            columns.iter().zip(&types).map(|(column, ty)| (random::array(column, ty), ty.clone())).collect();
        let rows: Vec<Vec<Scalar>> =
            (0..rows).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect();
        (Arc::new(MemoryTable::new(&arrays, 5000, &vec![Choice::Auto; arrays.len()])), rows)
    };
    for seed in 0..20 {
        let mut random = Random(seed);
        let build_rows = *random.pick(&[0, 1, 600, 3000]);
        // Beyond what the other side has, so that a probe must not take it for something else.
        let (build, others) = table(&mut random, build_rows, 1);
        let (probe, rows) = table(&mut random, 2500, 1 << 100);
        for keys in [vec![0, 1], vec![1, 0], vec![0, 2], vec![3, 0, 1], vec![0, 1, 2, 3], vec![1, 2]] {
            for kind in [JoinKind::Inner, JoinKind::Left, JoinKind::Anti, JoinKind::RightAnti] {
                for nulls_are_equal in [false, true] {
                    let theirs = keys.iter().copied().chain([4]).map(Expr::Column).collect();
                    let build = Box::new(scan(&build, types.len(), theirs));
                    let ours: Vec<Expr> = keys.iter().map(|&key| Expr::Column(key)).collect();
                    let join = Join { kind, build, keys: ours, nulls_are_equal, condition: None };
                    let width = types.len();
                    let outputs: Vec<usize> = match kind {
                        JoinKind::Anti => vec![4],
                        JoinKind::RightAnti => vec![width],
                        _ => vec![4, width],
                    };
                    let output = Output::Rows(outputs.iter().map(|&column| Expr::Column(column)).collect());
                    let pipeline =
                        Pipeline { steps: vec![Step::Join(join)], output, ..scan(&probe, width, Vec::new()) };
                    let out_types = vec![LogicalType::Int64; outputs.len()];
                    let mut found = rows_of(pipeline, &out_types, 1 + random.below(2))?;
                    let of_others: Vec<_> = others
                        .iter()
                        .map(|row| (keys.iter().map(|&key| row[key].clone()).collect(), vec![row[4].clone()]))
                        .collect();
                    let model = Model {
                        kind,
                        keys: &keys,
                        nulls_are_equal,
                        condition: None,
                        others: &of_others,
                        payload_count: 1,
                    };
                    let Some(wanted) = model.joined(rows.clone(), width) else { continue };
                    let mut wanted: Vec<Vec<Scalar>> =
                        wanted.iter().map(|row| outputs.iter().map(|&column| row[column].clone()).collect()).collect();
                    let text = |row: &Vec<Scalar>| format!("{row:?}");
                    found.sort_by_key(text);
                    wanted.sort_by_key(text);
                    assert!(found == wanted, "seed {seed}, {kind:?} by {keys:?}, {nulls_are_equal}");
                }
            }
        }
    }
    Ok(())
}
