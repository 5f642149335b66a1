//! A row that does not fit names its file, line, column and value, or is skipped and counted.

use super::{file, lines, message, options, read};
use crate::{ReadOptions, open, open_projected, sniff};

#[test]
fn messages_name_line_column_value_and_remedy() {
    let whole = ReadOptions::default();
    let (_keep, path) = file("p.csv", "a,b\n1,2\n3\n");
    assert_eq!(
        message(&path, read(&path, &whole)),
        "p.csv, line 3, value '3': 1 field where 2 are expected; (on_error 'skip') leaves such rows out and counts them"
    );
    let (_keep, path) = file("p.csv", "a,b\n\"x\ny\",2\n\"3,4\n5,6\n");
    assert_eq!(
        message(&path, read(&path, &options(&[("delimiter", ","), ("quote", "\"")]))),
        "p.csv, line 4, value '\"3,4': the quote that opens here is never closed; \
         (on_error 'skip') leaves such rows out and counts them"
    );
    let (_keep, path) = file("p.csv", "a,b\n1,2\n3,x\n");
    assert_eq!(
        message(&path, read(&path, &options(&[("types", "b SMALLINT")]))),
        "p.csv, line 3, column \"b\", value 'x': not of type SMALLINT; \
         (on_error 'skip') leaves such rows out and counts them"
    );
    let (_keep, path) = file("p.csv", b"a,b\n1,caf\xE9\n");
    assert_eq!(
        message(&path, read(&path, &whole)),
        "p.csv, line 2, column \"b\", value 'caf\\xe9': not UTF-8; (encoding 'latin-1') reads it if that is what it \
         is, (on_error 'skip') leaves such rows out"
    );
    assert_eq!(lines(&read(&path, &options(&[("encoding", "latin-1")])).unwrap()), ["1|café"]);
    let (_keep, path) = file("p.json", "{\"a\":1}\n{\"a\":2,\n{\"a\":3}\n");
    assert_eq!(
        message(&path, read(&path, &whole)),
        "p.json, line 2, value '': a key in quotes is expected; (on_error 'skip') leaves such rows out and counts them"
    );
    let (_keep, path) = file("p.jsonl", "{\"a\":{\"b\":1}}\n{\"a\":{\"b\":\"x\"}}\n");
    assert_eq!(
        message(&path, read(&path, &options(&[("types", "a INT")]))),
        "p.jsonl, line 1, column \"a\", value '{\"b\":1}': not of type INTEGER; \
         (on_error 'skip') leaves such rows out and counts them"
    );
}

#[test]
fn a_late_disagreement_says_that_types_came_from_a_sample() {
    // The odd value lies between the stretches of a sample of 2 MiB.
    let mut text = "id,price\n".to_string();
    for row in 0..600_000 {
        let price = if row == 250_000 { "n/k".to_string() } else { (row % 1000).to_string() };
        text.push_str(&format!("{row},{price}\n"));
    }
    let (_keep, path) = file("big.csv", text);
    let settings = options(&[("sample", "2097152")]);
    assert_eq!(
        message(&path, read(&path, &settings)),
        "big.csv, line 250002, column \"price\", value 'n/k': not of type BIGINT, the type of this column in the \
         sample; (types 'price VARCHAR') sets another type, (sample 'all') looks at all rows first, \
         (on_error 'skip') leaves such rows out"
    );
    let types =
        |settings: &ReadOptions| sniff(std::slice::from_ref(&path), settings, None).unwrap().schema().to_string();
    assert!(types(&options(&[("sample", "all")])).contains("\"price\": nullable Utf8"));
    let rows: usize = read(&path, &options(&[("sample", "all")])).unwrap().iter().map(|batch| batch.num_rows()).sum();
    assert_eq!(rows, 600_000);
}

#[test]
fn skipped_rows_are_counted_whatever_is_asked_for() {
    let text = "a,b,c\n1,2,x\n3,4\ny,5,z\n\"6\"7,8,9\n10,11,w\n";
    let (_keep, path) = file("s.csv", text);
    let settings = options(&[("on_error", "skip"), ("types", "a INT, b INT"), ("quote", "\"")]);
    let mut reader = open(std::slice::from_ref(&path), &settings, None).unwrap();
    let batches: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(lines(&batches), ["1|2|x", "10|11|w"]);
    assert_eq!(reader.skipped().row_count(), 3);
    let told: Vec<_> = reader.skipped().messages().iter().map(|m| (m.line, m.problem.as_str())).collect();
    assert_eq!(
        told,
        [(3, "2 fields where 3 are expected"), (4, "not of type INTEGER"), (5, "text after the closing quote")]
    );
    for projection in [&[2][..], &[]] {
        let mut reader = open_projected(std::slice::from_ref(&path), &settings, None, projection).unwrap();
        let rows: usize = reader.by_ref().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!((rows, reader.skipped().row_count()), (2, 3));
    }
    let (_keep, path) = file("s.jsonl", "{\"a\":1}\n{\"a\":\n[1]\n{\"a\":2}\n");
    let mut reader = open(&[path], &options(&[("on_error", "skip")]), None).unwrap();
    assert_eq!(lines(&reader.by_ref().map(Result::unwrap).collect::<Vec<_>>()), ["1", "2"]);
    assert_eq!(reader.skipped().row_count(), 2);
}
