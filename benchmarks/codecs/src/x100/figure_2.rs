//! Figure 2: ratio and both bandwidths on columns of TPC-H, beside LZRW1 and LZO, and beside LZ4 and Zstandard of
//! today.

use super::columns::{self, Column};
use crate::Failure;
use crate::codec::{Entrant, Opened};
use crate::peers;
use crate::race::{Effort, Run, race};
use crate::schemes::{check, plain_bytes};
use crate::sinter::Sinter;
use serde_json::{Value, json};
use sinter_codec::{ROW_GROUP_LEN, ValuesBuf};
use std::hint::black_box;

/// What one contender made of one column.
struct Measured {
    name: String,
    ratio: f64,
    encode_mb_s: f64,
    decode_mb_s: f64,
}

pub(super) fn run(effort: Effort) -> Result<Value, Failure> {
    let effort = Effort { rounds: if effort.is_quick { 1 } else { 5 }, ..effort };
    println!("\nFigure 2: lineitem, ratio and MB/s of plain values, encode / decode");
    println!("(paper: LZRW1 and LZOP decode 200 to 500 MB/s; aim of its schemes 2000 to 6000, encoding above 1000)");
    let mut records = Vec::new();
    for column in columns::lineitem(if effort.is_quick { 1 } else { 8 } * ROW_GROUP_LEN)? {
        eprintln!("figure 2: {}", column.name);
        let measured = measure(&column, effort)?;
        if records.is_empty() {
            print!("{:<16}", "column");
            measured.iter().for_each(|one| print!(" {:>21}", one.name));
            println!();
        }
        print!("{:<16}", column.name);
        for one in &measured {
            print!(" {:>7.2} {:>6.0}/{:>6.0}", one.ratio, one.encode_mb_s, one.decode_mb_s);
        }
        println!();
        let contenders = measured.iter().map(|one| {
            json!({
                "name": one.name, "ratio": one.ratio, "encode_mb_s": one.encode_mb_s, "decode_mb_s": one.decode_mb_s,
            })
        });
        records.push(json!({ "column": column.name, "contenders": contenders.collect::<Vec<_>>() }));
    }
    Ok(records.into())
}

fn measure(column: &Column, effort: Effort) -> Result<Vec<Measured>, Failure> {
    let physical = column.blocks[0].physical();
    let mut entrants = vec![Entrant::ours(Sinter::auto())];
    entrants.extend(peers::lempel_ziv(physical));
    let plain: usize = column.blocks.iter().map(|block| plain_bytes(block.as_values())).sum();
    let mut pressed: Vec<Vec<Vec<u8>>> = Vec::new();
    for entrant in &mut entrants {
        let mut blocks = Vec::new();
        for values in &column.blocks {
            let mut bytes = Vec::new();
            entrant.codec.encode(values.as_values(), &mut bytes)?;
            check(&*entrant.codec.open(&bytes, values.len())?, &entrant.codec.name(), values)?;
            blocks.push(bytes);
        }
        pressed.push(blocks);
    }
    let bytes: Vec<usize> = pressed.iter().map(|blocks| blocks.iter().map(Vec::len).sum()).collect();
    let mut decodes: Vec<Run<'_>> = Vec::new();
    for (entrant, blocks) in entrants.iter().zip(&pressed) {
        let mut out = ValuesBuf::new(physical);
        let opened: Vec<Box<dyn Opened + '_>> = blocks
            .iter()
            .zip(&column.blocks)
            .map(|(bytes, values)| entrant.codec.open(bytes, values.len()))
            .collect::<Result<_, _>>()?;
        decodes.push(Box::new(move || {
            for block in &opened {
                block.whole(&mut out);
                black_box(&out);
            }
        }));
    }
    let decodes = race(&mut decodes, effort);
    let names: Vec<String> = entrants.iter().map(|entrant| entrant.codec.name()).collect();
    let mut encodes: Vec<Run<'_>> = Vec::new();
    for entrant in &mut entrants {
        let mut out = Vec::new();
        encodes.push(Box::new(move || {
            for values in &column.blocks {
                out.clear();
                entrant.codec.encode(values.as_values(), &mut out).expect("it did before");
                black_box(&out);
            }
        }));
    }
    let encodes = race(&mut encodes, effort);
    let megabytes = |seconds: f64| plain as f64 / seconds / 1e6;
    let times = encodes.into_iter().zip(decodes);
    let measured = names.into_iter().zip(bytes).zip(times).map(|((name, bytes), (encode, decode))| Measured {
        name,
        ratio: plain as f64 / bytes as f64,
        encode_mb_s: megabytes(encode.min.as_secs_f64()),
        decode_mb_s: megabytes(decode.min.as_secs_f64()),
    });
    Ok(measured.collect())
}
