//! A room depends only on rooms above it in the workspace manifest's list.
//!
//! Reads the manifests as text: the `members` list gives the order, the dependency lines of each room give its
//! neighbours. Written against the manifests as they are laid out here, not against TOML at large.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Folders of the rooms, in the order of the workspace's `members`.
fn members() -> Vec<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let list = manifest.split_once("members = [").unwrap().1.split_once(']').unwrap().0;
    list.split(',').map(|entry| entry.trim().trim_matches('"').to_owned()).filter(|entry| !entry.is_empty()).collect()
}

fn manifest(folder: &str) -> String {
    fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap()
}

fn package_name(manifest: &str) -> String {
    let line = manifest.lines().find(|line| line.starts_with("name = ")).unwrap();
    line.split('"').nth(1).unwrap().to_owned()
}

/// Names under `[dependencies]`, without those for tests only.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.trim() == "[dependencies]";
        } else if inside && let Some((key, _)) = line.split_once('=') {
            names.push(key.trim().trim_end_matches(".workspace").to_owned());
        }
    }
    names
}

#[test]
fn a_room_depends_only_on_rooms_above_it() {
    let members = members();
    let names: Vec<String> = members.iter().map(|folder| package_name(&manifest(folder))).collect();
    assert!(names.contains(&"sinter-codec".to_owned()), "the member list was not read: {names:?}");
    let mut checked = 0;
    for (position, folder) in members.iter().enumerate() {
        for dependency in dependencies(&manifest(folder)) {
            if let Some(other) = names.iter().position(|name| *name == dependency) {
                assert!(other < position, "{} depends on {dependency}, which stands below it", names[position]);
                checked += 1;
            }
        }
    }
    assert!(checked >= 8, "only {checked} dependencies between rooms were found");
}

#[test]
fn only_sql_knows_datafusion() {
    for folder in members() {
        let knows = dependencies(&manifest(&folder)).iter().any(|name| name.starts_with("datafusion"));
        assert!(!knows || folder == "crates/sql", "{folder} depends on DataFusion");
    }
}

#[test]
fn faces_use_the_front_door_alone() {
    for folder in ["crates/cli", "python"] {
        for dependency in dependencies(&manifest(folder)) {
            assert!(!dependency.starts_with("sinter-"), "{folder} depends on the inner room {dependency}");
        }
    }
}
