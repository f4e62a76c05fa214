//! The tree keeps the rules of the house, which CONTRIBUTING.md states: small files that say what
//! they are for, nothing astray, no panic or print where a person's run would meet it, and no path
//! of anybody's machine. What clippy and rustfmt can see is left to them.

use std::fs;
use std::path::{Path, PathBuf};

/// All that may lie at the top, besides dot-files and licence files.
const TOP: [&str; 14] = [
    "Cargo.toml",
    "Cargo.lock",
    "src",
    "vision",
    "projector",
    "experts",
    "conclusion",
    "assets",
    "tests",
    "benches",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Dockerfile",
];
/// Folders that are nobody's source: of the build, of version control, of a toolchain's settings.
const FOREIGN: [&str; 4] = ["target", ".git", ".cargo", "venv"];
/// The crates that may not print.
const LIBRARIES: [&str; 4] = ["vision", "projector", "experts", "conclusion"];
/// A file of code has fewer lines than this.
const LINES: usize = 400;
/// The embedded panel has at most so many bytes.
const PANEL_BYTES: u64 = 25_000_000;

const PANICS: [&str; 6] = [
    ".unwrap()",
    ".expect(",
    "panic!(",
    "todo!(",
    "unimplemented!(",
    "unreachable!(",
];
const PRINTS: [&str; 3] = ["print!(", "println!(", "dbg!("];
const MACHINE_PATHS: [&str; 5] = ["/home/", "/root/", "/tmp/", "/Users/", "C:\\"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file of the tree, by its path from the top.
fn files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_file() {
                found.push(path.strip_prefix(root()).unwrap().to_path_buf());
            } else if !FOREIGN.contains(&name.as_str()) && !is_output(&path) {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A folder that this program wrote, as a person may have it lie about: a run, a training, or
/// phantoms. The phantoms in `assets` are source.
fn is_output(folder: &Path) -> bool {
    let marks = ["run.json", "phantoms.json", "tokenizer.json"];
    !folder.starts_with(root().join("assets")) && marks.iter().any(|m| folder.join(m).is_file())
}

fn rust_files() -> impl Iterator<Item = (PathBuf, String)> {
    let rust = |path: &PathBuf| path.extension().is_some_and(|e| e == "rs");
    files().into_iter().filter(rust).map(|path| {
        let text = fs::read_to_string(root().join(&path)).unwrap();
        (path, text)
    })
}

/// Whether a file is compiled into the program: neither a test nor a bench.
fn is_shipped(path: &Path) -> bool {
    let part = |name: &str| path.iter().any(|part| part == name);
    part("src") && !part("tests") && !path.ends_with("tests.rs")
}

/// The lines outside of tests, with their numbers.
fn outside_tests(text: &str) -> Vec<(usize, &str)> {
    let mut lines = (1..).zip(text.lines());
    let mut kept = Vec::new();
    while let Some((number, line)) = lines.next() {
        if line.trim_start() == "#[cfg(test)]" {
            let indent = line.len() - line.trim_start().len();
            lines.by_ref().find(|(_, line)| ends_item(line, indent));
        } else {
            kept.push((number, line));
        }
    }
    kept
}

/// The lines of code outside of tests and comments, with their numbers.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = outside_tests(text).into_iter();
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Whether an item that began at this depth ends on this line, in the form rustfmt gives it: an
/// item of one line ends with a semicolon, one of several with a bracket under its beginning.
fn ends_item(line: &str, indent: usize) -> bool {
    let start = line.trim_start();
    let words = start.contains(char::is_alphabetic);
    line.len() - start.len() == indent
        && (start == "}" || start == "};" || words && start.ends_with(';'))
}

/// Where the code has one of these in it.
fn uses<'a>(
    path: &'a Path,
    text: &'a str,
    banned: &'a [&str],
) -> impl Iterator<Item = String> + 'a {
    code(text).filter_map(move |(number, line)| {
        let found = banned.iter().find(|word| line.contains(**word))?;
        Some(format!("{}:{number}: {found}", path.display()))
    })
}

fn assert_none(faults: &[String], rule: &str) {
    assert!(faults.is_empty(), "{rule}\n{}", faults.join("\n"));
}

#[test]
fn files_are_short() {
    let long = rust_files().filter_map(|(path, text)| {
        let n = text.lines().count();
        (n >= LINES).then(|| format!("{}: {n} lines", path.display()))
    });
    let rule = format!("a file has fewer than {LINES} lines");
    assert_none(&long.collect::<Vec<_>>(), &rule);
}

#[test]
fn every_module_says_what_it_is_for() {
    let silent = rust_files().filter(|(_, text)| !text.starts_with("//! "));
    let silent: Vec<_> = silent.map(|(path, _)| path.display().to_string()).collect();
    assert_none(&silent, "a file begins with `//! ` and what it does");
}

#[test]
fn libraries_do_not_print() {
    let faults: Vec<_> = rust_files()
        .filter(|(path, _)| is_shipped(path) && LIBRARIES.iter().any(|l| path.starts_with(l)))
        .flat_map(|(path, text)| uses(&path, &text, &PRINTS).collect::<Vec<_>>())
        .collect();
    assert_none(&faults, "the crates below the program say nothing");
}

#[test]
fn nothing_panics_on_purpose() {
    let faults: Vec<_> = rust_files()
        .filter(|(path, _)| is_shipped(path))
        .flat_map(|(path, text)| uses(&path, &text, &PANICS).collect::<Vec<_>>())
        .collect();
    assert_none(&faults, "an error is a value, outside of tests");
}

#[test]
fn nothing_is_astray_at_the_top() {
    let mut strays = Vec::new();
    for entry in fs::read_dir(root()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let known = TOP.contains(&name.as_str()) || name.starts_with("LICENSE");
        let foreign = FOREIGN.contains(&name.as_str()) || name.starts_with('.');
        if !known && !foreign && !is_output(&path) {
            strays.push(name);
        }
    }
    assert_none(&strays, "the top of the tree is fixed");
}

#[test]
fn no_file_knows_a_machine() {
    let mut faults = Vec::new();
    for path in files() {
        let rust = path.extension().is_some_and(|e| e == "rs");
        if (rust && !is_shipped(&path)) || path.starts_with("tests") {
            continue;
        }
        // Weights and pictures are not text.
        let Ok(text) = fs::read_to_string(root().join(&path)) else {
            continue;
        };
        let lines: Vec<_> = if rust {
            outside_tests(&text)
        } else {
            (1..).zip(text.lines()).collect()
        };
        for (number, line) in lines {
            if let Some(found) = MACHINE_PATHS.iter().find(|p| line.contains(**p)) {
                faults.push(format!("{}:{number}: {found}", path.display()));
            }
        }
    }
    assert_none(&faults, "paths are relative, or given by the person");
}

#[test]
fn the_embedded_panel_is_small() {
    let weights = files()
        .into_iter()
        .filter(|path| path.starts_with("assets/mini"));
    let bytes: u64 = weights
        .map(|path| root().join(path).metadata().unwrap().len())
        .sum();
    assert!(bytes > 0, "assets/mini is empty");
    assert!(
        bytes <= PANEL_BYTES,
        "assets/mini has {bytes} bytes, at most {PANEL_BYTES} are allowed"
    );
}

#[test]
fn tests_and_comments_are_not_code() {
    let text = "//! x.unwrap()\nfn a() {}\n#[cfg(test)]\nuse b;\nfn c() {}\nimpl D {\n    \
                #[cfg(test)]\n    fn e() {\n        f.unwrap();\n    }\n    fn g() {}\n}\n\
                #[cfg(test)]\nmod tests {\n    fn h() { panic!(\"i\") }\n}\nfn j() { k.unwrap() }\n";
    let numbers: Vec<_> = code(text).map(|(number, _)| number).collect();
    assert_eq!(numbers, [2, 5, 6, 11, 12, 17]);
    let found: Vec<_> = uses(Path::new("x.rs"), text, &PANICS).collect();
    assert_eq!(found, ["x.rs:17: .unwrap()"]);
}
