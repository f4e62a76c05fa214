//! Layering rules of the workspace: few top-level modules ("rooms") and imports in one direction.
//!
//! The tests parse every source file and determine which file uses which. Test code is excluded.
//! A use of an item counts as an import of the file that defines it, through any number of
//! re-exports.

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

/// Rooms of `src` from the top layer to the bottom layer. A room may import the rooms below it. Rooms
/// on the same line must not import each other.
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
/// Folders of the crates from the top layer to the bottom layer. A crate may depend on those below it.
const CRATES: [&str; 6] = [
    "",
    "conclusion",
    "experts",
    "projector",
    "vision",
    "vision/kernels",
];
/// Maximum number of rooms in `src`, and of files and folders directly in a room.
const MOST: usize = 9;
/// Files allowed in `src` next to the rooms.
const ROOTS: [&str; 3] = ["build.rs", "lib.rs", "main.rs"];

/// Returns the layer of a room; crate roots are above all rooms.
fn floor(room: Option<&str>) -> Option<usize> {
    match room {
        Some(room) => ROOMS
            .iter()
            .position(|rooms| rooms.contains(&room))
            .map(|i| i + 1),
        None => Some(0),
    }
}

/// Returns the room of a file of `src`; `None` for a crate root.
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

/// Returns violations of the limits on rooms and their entries.
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

/// Returns the imports between rooms that do not go down, one per pair of files.
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
        // An unlisted room may neither import nor be imported.
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

/// Returns the import cycles between files, with one import per line.
fn file_circles(imports: &Imports) -> Vec<String> {
    let circles = circles(imports.files.len(), &imports.references).into_iter();
    let shown = circles.map(|circle| {
        let mut files: Vec<usize> = circle.iter().map(|reference| reference.from).collect();
        files.dedup();
        let lines = circle
            .iter()
            .map(|reference| format!("  {}", imports.shown(reference)));
        let lines: Vec<String> = lines.collect();
        format!(
            "import cycle of {} files:\n{}",
            files.len(),
            lines.join("\n")
        )
    });
    shown.collect()
}

/// Returns the dependencies between workspace crates that do not go down, according to the
/// `Cargo.toml` files.
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

/// Returns the imports of this workspace, which are read once for all tests.
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
fn imports_between_rooms_go_down() {
    assert_none(
        &upward_imports(ours()),
        "a room may import only rooms below it",
    );
}

#[test]
fn imports_have_no_cycles() {
    assert_none(
        &file_circles(ours()),
        "imports between files must not form a cycle",
    );
}

#[test]
fn crates_depend_on_crates_below() {
    assert_none(
        &upward_dependencies(ours()),
        "a crate may depend only on crates below it",
    );
}

/// Guards against a parser that finds no imports, which would make the other tests pass.
#[test]
fn workspace_imports_are_found() {
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
        ("vision/src", "vision/kernels/src"),
    ] {
        assert!(finds(from, to), "{from} imports {to}");
    }
    let n = imports.references.len();
    assert!(n > 1000, "found only {n} imports");
}
