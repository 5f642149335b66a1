//! Random GROUPING SETS, against the groups by each set alone; and that they all take one pass.

use crate::groups_agree_with_a_naive_model::identity;
use crate::support::aggregates::{close, random_aggregates_of_groups};
use crate::support::exprs;
use crate::support::random::Random;
use crate::support::table::MemoryTable;
use crate::support::{self, choice_lists, random_table, read_back};
use sinter_codec::Scalar;
use sinter_exec::{
    Aggregate, AggregateFunction, Expr, GroupingSet, LogicalType, Memory, Output, Pipeline, ScanColumn, Source,
    Unlimited,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const NUMBER_TYPE: LogicalType = LogicalType::UInt8;

fn pipeline(table: &Arc<MemoryTable>, filter: &[Expr], output: Output) -> Pipeline {
    Pipeline {
        source: Source::Table(Arc::clone(table) as _),
        columns: (0..exprs::types().len()).map(ScanColumn::Table).collect(),
        filter: filter.to_vec(),
        steps: Vec::new(),
        output,
        limit: None,
        on_damage: Default::default(),
    }
}

/// Some of so many keys in each set, each set with a number of its own.
fn random_sets(random: &mut Random, keys: usize) -> Vec<GroupingSet> {
    let count = random.below(7) as i128;
    let set = |number| GroupingSet { keys: (0..keys).filter(|_| random.chance(50)).collect(), number };
    (0..count).map(|number| number * 7).map(set).collect()
}

#[test]
fn each_set_has_its_groups() {
    let (mut most, mut spilled) = (0, 0);
    for (index, choices) in choice_lists().iter().enumerate() {
        for seed in 0..4u64 {
            let seed = seed * 100 + index as u64;
            let mut random = Random(seed);
            let rows = *random.pick(&[0, 1, 700, 2500, 9000]);
            let (table, _) = random_table(&mut random, rows, (seed % 3) as usize, choices);
            let table = Arc::new(table);
            let types = exprs::types();
            for query in 0..8 {
                let filter: Vec<Expr> =
                    if random.chance(50) { Vec::new() } else { vec![exprs::simple_condition(&mut random)] };
                let key = |random: &mut Random| {
                    let column = random.below(types.len());
                    match random.below(8) {
                        0 => exprs::simple_condition(random),
                        1 => Expr::Literal(Scalar::Null, types[column].clone()),
                        _ => Expr::Column(column),
                    }
                };
                let keys: Vec<Expr> = (0..1 + random.below(4)).map(|_| key(&mut random)).collect();
                let sets = random_sets(&mut random, keys.len());
                let count = random.below(4);
                let aggregates = random_aggregates_of_groups(&mut random, count);
                let context =
                    || format!("seed {seed}, query {query}, {choices:?}\n{keys:?}\n{sets:?}\n{aggregates:#?}");

                let mut expected: BTreeMap<(i128, String), Vec<Scalar>> = BTreeMap::new();
                let mut fails = false;
                for set in &sets {
                    let own = set.keys.iter().map(|&key| keys[key].clone()).collect();
                    let output = Output::Groups { keys: own, aggregates: aggregates.clone() };
                    let groups = read_back(pipeline(&table, &filter, output));
                    let Ok(found) = support::rows_of(groups.clone(), &groups.output_types(), 1) else {
                        fails = true;
                        break;
                    };
                    for row in found {
                        let (values, results) = row.split_at(set.keys.len());
                        let mut wanted = vec![Scalar::Null; keys.len()];
                        set.keys.iter().zip(values).for_each(|(&key, value)| wanted[key] = value.clone());
                        let name = (set.number, identity(&wanted));
                        wanted.push(Scalar::Int(set.number));
                        wanted.extend_from_slice(results);
                        assert!(expected.insert(name, wanted).is_none(), "a group is there twice\n{}", context());
                    }
                }
                most = most.max(expected.len());

                let number_type = NUMBER_TYPE;
                let (keys, sets, aggregates) = (keys.clone(), sets.clone(), aggregates.clone());
                let key_count = keys.len();
                let output = Output::GroupingSets { keys, sets, number_type, aggregates };
                let outer = read_back(pipeline(&table, &filter, output));
                let (threads, types) = (1 + random.below(3), outer.output_types());
                let (found, is_spilled) = match random.below(2) {
                    0 => support::rows_spilled(&outer, &types, threads, &mut random),
                    _ => (support::rows_of(outer, &types, threads), false),
                };
                spilled += usize::from(is_spilled);
                match found {
                    Ok(found) => {
                        assert!(!fails, "one set alone fails\n{}", context());
                        assert_eq!(found.len(), expected.len(), "{}", context());
                        for row in found {
                            let Scalar::Int(number) = row[key_count] else { panic!("{row:?}\n{}", context()) };
                            let Some(wanted) = expected.get(&(number, identity(&row[..key_count]))) else {
                                panic!("nobody wants {row:?}\n{}", context());
                            };
                            let same = row.iter().zip(wanted).all(|(found, wanted)| close(found, wanted));
                            assert!(same, "{row:?}\n{wanted:?}\n{}", context());
                        }
                    }
                    Err(error) => assert!(fails, "{error}\n{}", context()),
                }
            }
        }
    }
    assert!(most > 5000 && spilled > 30, "{most} groups at most, {spilled} times spilled");
}

#[test]
fn all_sets_take_one_pass() {
    let (table, _) = random_table(&mut Random(3), 9000, 1, &choice_lists()[0]);
    let table = Arc::new(table);
    let keys: Vec<Expr> = [0, 1, 2].map(Expr::Column).into();
    let count =
        Aggregate { function: AggregateFunction::CountStar, argument: None, filter: None, ty: LogicalType::Int64 };
    let aggregates = vec![count];
    let set = |keys: &[usize], number| GroupingSet { keys: keys.to_vec(), number };
    let sets = vec![set(&[0, 1, 2], 0), set(&[0, 1], 1), set(&[2], 2), set(&[], 3)];
    let memory: Arc<dyn Memory> = Arc::new(Unlimited);
    let touched = |output: Output| {
        let run = pipeline(&table, &[], output).start().expect("ours");
        run.groups(2, &memory).expect("no error");
        let counters = &run.counters;
        [&counters.vectors_total, &counters.vectors_decoded, &counters.vectors_decoded_again, &counters.rows_scanned]
            .map(|counter| counter.load(Ordering::Relaxed))
    };
    let of_one = touched(Output::Groups { keys: keys.clone(), aggregates: aggregates.clone() });
    let output = Output::GroupingSets { keys, sets, number_type: NUMBER_TYPE, aggregates };
    let text = pipeline(&table, &[], output.clone()).start().expect("ours").explain().to_string();
    assert!(text.contains("group by sets: ("), "{text}");
    assert_eq!((touched(output), of_one[2]), (of_one, 0));
}
