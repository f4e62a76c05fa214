//! The layout of the workspace: few rooms, and imports that run one way.
//!
//! The tests read every source file and work out themselves which file uses which. Tests and their
//! modules are left out. An item counts as an import of the file that defines it, however many
//! re-exports lie between.

mod circles;
mod imports;
mod made_up;
mod resolve;
mod scope;
mod tokens;
mod workspace;

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use circles::circles;
use imports::{Imports, Reference};
use workspace::Crate;

/// The rooms of `src` from the top to the ground. A room may import the rooms below it. Rooms that
/// share a line are peers, which import nothing from each other.
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
/// The crates by their folders, from the top to the ground. A crate may depend on those below it.
const CRATES: [&str; 6] = [
    "",
    "conclusion",
    "experts",
    "projector",
    "vision",
    "vision/kernels",
];
/// `src` has at most so many rooms, and a room so many files and folders directly in it.
const MOST: usize = 9;
/// The files that may lie in `src` beside the rooms.
const ROOTS: [&str; 3] = ["build.rs", "lib.rs", "main.rs"];

/// The floor on which a room lies; the roots of the crate lie above all rooms.
fn floor(room: Option<&str>) -> Option<usize> {
    match room {
        Some(room) => ROOMS
            .iter()
            .position(|rooms| rooms.contains(&room))
            .map(|i| i + 1),
        None => Some(0),
    }
}

/// The room of a file of `src`. `None`: it is a root of the crate.
fn room(path: &Path) -> Option<&str> {
    let rest = path.strip_prefix("src").ok()?;
    rest.parent()?.iter().next()?.to_str()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// What is wrong with the folders of `src`.
fn crowded_rooms(top: &Path) -> Vec<String> {
    let src = top.join("src");
    let (rooms, files): (Vec<_>, Vec<_>) = names(&src)
        .into_iter()
        .partition(|name| src.join(name).is_dir());
    let mut faults = Vec::new();
    if rooms.len() > MOST {
        faults.push(format!(
            "src: {} rooms, at most {MOST} are allowed",
            rooms.len()
        ));
    }
    for file in files.iter().filter(|file| !ROOTS.contains(&file.as_str())) {
        faults.push(format!("src/{file}: expected in a room"));
    }
    for room in rooms {
        if floor(Some(&room)).is_none() {
            faults.push(format!("src/{room}: not in the list of rooms"));
        }
        let entries = names(&src.join(&room)).len();
        if entries > MOST {
            faults.push(format!(
                "src/{room}: {entries} entries, at most {MOST} are allowed"
            ));
        }
    }
    faults
}

/// The imports between rooms that do not run down, one for each two files.
fn upward_imports(imports: &Imports) -> Vec<String> {
    let inside = |file: usize| imports.crate_of(file).is_empty();
    let floor_of = |file: usize| floor(room(&imports.files[file]));
    let mut wrong: Vec<&Reference> = Vec::new();
    for reference in imports
        .references
        .iter()
        .filter(|r| inside(r.from) && inside(r.to))
    {
        let (from, to) = (reference.from, reference.to);
        let stays = room(&imports.files[from]) == room(&imports.files[to]);
        // A room that is in no list may neither import nor be imported.
        let runs_down = matches!((floor_of(from), floor_of(to)), (Some(a), Some(b)) if a < b);
        let known = wrong
            .iter()
            .any(|known| (known.from, known.to) == (from, to));
        if !stays && !runs_down && !known {
            wrong.push(reference);
        }
    }
    wrong
        .iter()
        .map(|reference| imports.shown(reference))
        .collect()
}

/// The circles of files, each import of a circle on a line of its own.
fn file_circles(imports: &Imports) -> Vec<String> {
    let circles = circles(imports.files.len(), &imports.references).into_iter();
    let shown = circles.map(|circle| {
        let mut files: Vec<usize> = circle.iter().map(|reference| reference.from).collect();
        files.dedup();
        let lines = circle
            .iter()
            .map(|reference| format!("  {}", imports.shown(reference)));
        let lines: Vec<String> = lines.collect();
        format!("a circle of {} files:\n{}", files.len(), lines.join("\n"))
    });
    shown.collect()
}

/// The dependencies between crates of the workspace that do not run down, as `Cargo.toml` files
/// state them.
fn upward_dependencies(imports: &Imports) -> Vec<String> {
    let place = |folder: &str| CRATES.iter().position(|f| *f == folder);
    let mut faults = Vec::new();
    for from in &imports.crates {
        let here = place(&from.folder);
        if here.is_none() {
            faults.push(format!("{}: not in the list of crates", from.folder));
        }
        let known = |to: &&Crate| from.dependencies.contains(&to.name);
        for to in imports.crates.iter().filter(known) {
            if here >= place(&to.folder) {
                faults.push(format!("{} depends on {}", from.name, to.name));
            }
        }
    }
    faults
}

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The imports of this workspace, read once for all tests.
fn ours() -> &'static Imports {
    static IMPORTS: OnceLock<Imports> = OnceLock::new();
    IMPORTS.get_or_init(|| Imports::read(top()))
}

fn assert_none(faults: &[String], rule: &str) {
    assert!(faults.is_empty(), "{rule}\n{}", faults.join("\n"));
}

#[test]
fn rooms_are_few_and_small() {
    assert_none(
        &crowded_rooms(top()),
        &format!("src has at most {MOST} rooms with at most {MOST} entries each"),
    );
}

#[test]
fn imports_between_rooms_run_down() {
    assert_none(
        &upward_imports(ours()),
        "a room imports only rooms below it",
    );
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    assert_none(
        &file_circles(ours()),
        "imports between files make no circle",
    );
}

#[test]
fn crates_depend_on_crates_below() {
    assert_none(
        &upward_dependencies(ours()),
        "a crate depends only on crates below it",
    );
}

/// The other tests would pass if no import were found.
#[test]
fn the_imports_of_this_workspace_are_found() {
    let imports = ours();
    let finds = |from: &str, to: &str| {
        let starts = |file: usize, start: &str| imports.files[file].starts_with(start);
        let mut all = imports.references.iter();
        all.any(|r| starts(r.from, from) && starts(r.to, to))
    };
    for (from, to) in [
        ("src/main.rs", "src/cli"),
        ("src/judging", "src/data"),
        ("src/judging", "conclusion/src"),
        ("conclusion/src", "experts/src"),
        ("experts/src", "projector/src"),
        ("projector/src", "vision/src"),
    ] {
        assert!(finds(from, to), "{from} imports {to}");
    }
    let n = imports.references.len();
    assert!(n > 1000, "only {n} imports were found");
}
