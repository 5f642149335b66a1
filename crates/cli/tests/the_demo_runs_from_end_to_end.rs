//! `sinter demo` at a small scale: it ends well, shows what it promises, and the kept file opens.

mod shell;

use shell::{argument, output_of, sinter};

#[test]
fn the_demo_loads_shows_and_asks() {
    let directory = tempfile::tempdir().unwrap();
    let ran = sinter(&["demo", "--sf", "0.01", "--dir", argument(directory.path())]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    for shown in [
        "1. Load",
        "2. Look inside",
        "3. Ask",
        "336,776",
        "lineitem",
        "dep_delay",
        "l_comment",
        "total",
        "Frontier Airlines",
        "TPC-H Q6",
        "read compressed",
    ] {
        assert!(ran.out.contains(shown), "{shown:?} is missing:\n{}", ran.out);
    }

    let file = directory.path().join("demo.sinter");
    let count = "SELECT count(*) AS n, count(dep_time) AS departed FROM flights";
    assert_eq!(output_of(&[argument(&file), "--csv", "-c", count]), "n,departed\n336776,328521\n");

    let again = sinter(&["demo", "--sf", "0.01", "--dir", argument(directory.path())]);
    assert_eq!(again.code, 1);
    assert!(again.err.contains("demo.sinter exists"), "{}", again.err);
}
