//! Layering rules of the workspace: few top-level modules ("rooms") and imports in one direction.
//!
//! The tests parse every source file and determine which file uses which. Test code is excluded.
//! A use of an item counts as an import of the file that defines it, through any number of
//! re-exports.

mod import_cycles;
mod imports;
mod resolve;
mod rule_tests;
mod scope;
mod tokens;
mod type_names;
mod workspace;

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use import_cycles::import_cycles;
use imports::{Imports, Reference};
use type_names::repeated_type_names;
use workspace::Crate;

/// Rooms of `src`, one layer per line, from top to bottom. A room may import the rooms of lower
/// layers. Rooms of the same layer must not import each other.
const ROOMS: [&[&str]; 8] = [
    &["cli"],
    &["annotation"],
    &["training"],
    &["analysis"],
    &["judging"],
    &["checkpoints", "data"],
    &["statistics"],
    &["support"],
];
/// Folders of the crates, from top to bottom. A crate may depend on the crates below it.
const CRATES: [&str; 6] = ["", "conclusion", "experts", "projector", "vision", "vision/kernels"];
/// Maximum number of rooms in `src`, and of files and folders directly in a room.
const MAX_ENTRIES: usize = 9;
/// Files allowed in `src` next to the rooms.
const CRATE_ROOTS: [&str; 3] = ["build.rs", "lib.rs", "main.rs"];

/// Returns the layer of a room, counted from the top. `None` stands for the crate roots, which are
/// above all rooms.
fn layer(room: Option<&str>) -> Option<usize> {
    match room {
        Some(room) => ROOMS.iter().position(|rooms| rooms.contains(&room)).map(|i| i + 1),
        None => Some(0),
    }
}

/// Returns the room of a file of `src`; `None` for a crate root.
fn room_of(path: &Path) -> Option<&str> {
    let rest = path.strip_prefix("src").ok()?;
    rest.parent()?.iter().next()?.to_str()
}

/// Returns the sorted names of the entries of a folder.
fn entry_names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Returns violations of the limits on rooms and their entries.
fn room_violations(root: &Path) -> Vec<String> {
    let src = root.join("src");
    let (rooms, files): (Vec<_>, Vec<_>) =
        entry_names(&src).into_iter().partition(|name| src.join(name).is_dir());
    let mut violations = Vec::new();
    if rooms.len() > MAX_ENTRIES {
        violations.push(format!("src: {} rooms, at most {MAX_ENTRIES} are allowed", rooms.len()));
    }
    for file in files.iter().filter(|file| !CRATE_ROOTS.contains(&file.as_str())) {
        violations.push(format!("src/{file}: expected in a room"));
    }
    for room in rooms {
        if layer(Some(&room)).is_none() {
            violations.push(format!("src/{room}: not in the list of rooms"));
        }
        let entries = entry_names(&src.join(&room)).len();
        if entries > MAX_ENTRIES {
            violations
                .push(format!("src/{room}: {entries} entries, at most {MAX_ENTRIES} are allowed"));
        }
    }
    violations
}

/// Returns the imports between rooms that do not go to a lower layer, one per pair of files.
fn upward_imports(imports: &Imports) -> Vec<String> {
    let is_in_src = |file: usize| imports.crate_of(file).is_empty();
    let layer_of = |file: usize| layer(room_of(&imports.files[file]));
    let mut upward: Vec<&Reference> = Vec::new();
    for reference in imports.references.iter().filter(|r| is_in_src(r.from) && is_in_src(r.to)) {
        let (from, to) = (reference.from, reference.to);
        let is_same_room = room_of(&imports.files[from]) == room_of(&imports.files[to]);
        // An unlisted room may neither import nor be imported.
        let goes_down = matches!((layer_of(from), layer_of(to)), (Some(a), Some(b)) if a < b);
        let is_duplicate = upward.iter().any(|earlier| (earlier.from, earlier.to) == (from, to));
        if !is_same_room && !goes_down && !is_duplicate {
            upward.push(reference);
        }
    }
    upward.iter().map(|reference| imports.describe(reference)).collect()
}

/// Returns a description of each import cycle, with one import per line.
fn describe_cycles(imports: &Imports) -> Vec<String> {
    let cycles = import_cycles(imports.files.len(), &imports.references).into_iter();
    let descriptions = cycles.map(|cycle| {
        let mut files: Vec<usize> = cycle.iter().map(|reference| reference.from).collect();
        files.dedup();
        let lines = cycle.iter().map(|reference| format!("  {}", imports.describe(reference)));
        let lines: Vec<String> = lines.collect();
        format!("import cycle of {} files:\n{}", files.len(), lines.join("\n"))
    });
    descriptions.collect()
}

/// Returns the dependencies in the `Cargo.toml` files that do not go to a lower crate.
fn upward_dependencies(imports: &Imports) -> Vec<String> {
    let layer_of = |folder: &str| CRATES.iter().position(|f| *f == folder);
    let mut violations = Vec::new();
    for from in &imports.crates {
        let layer = layer_of(&from.folder);
        if layer.is_none() {
            violations.push(format!("{}: not in the list of crates", from.folder));
        }
        let is_dependency = |to: &&Crate| from.dependencies.contains(&to.name);
        for to in imports.crates.iter().filter(is_dependency) {
            if layer >= layer_of(&to.folder) {
                violations.push(format!("{} depends on {}", from.name, to.name));
            }
        }
    }
    violations
}

fn workspace_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the imports of this workspace. Reads them only once for all tests.
fn workspace_imports() -> &'static Imports {
    static IMPORTS: OnceLock<Imports> = OnceLock::new();
    IMPORTS.get_or_init(|| Imports::read(workspace_root()))
}

fn assert_no_violations(violations: &[String], rule: &str) {
    assert!(violations.is_empty(), "{rule}\n{}", violations.join("\n"));
}

#[test]
fn rooms_are_few_and_small() {
    assert_no_violations(
        &room_violations(workspace_root()),
        &format!("src has at most {MAX_ENTRIES} rooms with at most {MAX_ENTRIES} entries each"),
    );
}

/// Fails if a room is removed or renamed but not in the list.
#[test]
fn listed_rooms_exist() {
    for room in ROOMS.concat() {
        assert!(workspace_root().join("src").join(room).is_dir(), "src/{room}: no such room");
    }
}

#[test]
fn imports_between_rooms_go_down() {
    assert_no_violations(
        &upward_imports(workspace_imports()),
        "a room may import only rooms below it",
    );
}

#[test]
fn imports_have_no_cycles() {
    assert_no_violations(
        &describe_cycles(workspace_imports()),
        "imports between files must not form a cycle",
    );
}

#[test]
fn type_names_are_unique() {
    assert_no_violations(
        &repeated_type_names(workspace_root()),
        "a type name stands for one concept in the workspace",
    );
}

#[test]
fn crates_depend_on_crates_below() {
    assert_no_violations(
        &upward_dependencies(workspace_imports()),
        "a crate may depend only on crates below it",
    );
}

/// Fails if the parser finds no imports, because the other tests would then pass.
#[test]
fn workspace_imports_are_found() {
    let imports = workspace_imports();
    let has_import = |from: &str, to: &str| {
        let is_in = |file: usize, folder: &str| imports.files[file].starts_with(folder);
        let mut references = imports.references.iter();
        references.any(|r| is_in(r.from, from) && is_in(r.to, to))
    };
    for (from, to) in [
        ("src/main.rs", "src/cli"),
        ("src/judging", "src/data"),
        ("src/judging", "conclusion/src"),
        ("conclusion/src", "experts/src"),
        ("experts/src", "projector/src"),
        ("vision/src", "vision/kernels/src"),
    ] {
        assert!(has_import(from, to), "expected an import of {to} in {from}");
    }
    let count = imports.references.len();
    assert!(count > 1000, "found only {count} imports");
}
