//! Checks of the rules in CONTRIBUTING.md that clippy and rustfmt do not check: file length, module
//! comments, top-level entries, no panics in shipped code, no prints in library crates, no absolute
//! paths of a developer's machine, and the size of the embedded panel.

use std::fs;
use std::path::{Path, PathBuf};

/// Allowed top-level entries, besides dot-files and licence files.
const TOP_LEVEL: [&str; 14] = [
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
/// Folders without sources: build output, version control, toolchain settings, virtual environment.
const NOT_SOURCE: [&str; 4] = ["target", ".git", ".cargo", "venv"];
/// Crates that must not print.
const LIBRARIES: [&str; 4] = ["vision", "projector", "experts", "conclusion"];
/// Every Rust file has fewer lines than this.
const MAX_LINES: usize = 400;
/// Maximum size of the embedded panel in bytes.
const MAX_PANEL_BYTES: u64 = 25_000_000;

const PANICS: [&str; 6] =
    [".unwrap()", ".expect(", "panic!(", "todo!(", "unimplemented!(", "unreachable!("];
const PRINTS: [&str; 3] = ["print!(", "println!(", "dbg!("];
const MACHINE_PATHS: [&str; 5] = ["/home/", "/root/", "/tmp/", "/Users/", "C:\\"];

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the paths of all source files, relative to the root.
pub(crate) fn source_files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_file() {
                found.push(path.strip_prefix(root()).unwrap().to_path_buf());
            } else if !NOT_SOURCE.contains(&name.as_str()) && !is_output(&path) {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns true for a folder that acem3 wrote: a judge run, a training run or phantoms. The
/// phantoms in `assets` are sources.
fn is_output(folder: &Path) -> bool {
    let marks = ["run.json", "phantoms.json", "tokenizer.json"];
    !folder.starts_with(root().join("assets")) && marks.iter().any(|m| folder.join(m).is_file())
}

fn rust_files() -> impl Iterator<Item = (PathBuf, String)> {
    let rust = |path: &PathBuf| path.extension().is_some_and(|e| e == "rs");
    source_files().into_iter().filter(rust).map(|path| {
        let text = fs::read_to_string(root().join(&path)).unwrap();
        (path, text)
    })
}

/// Returns true for a file that is compiled into the program: no test and no benchmark.
fn is_shipped(path: &Path) -> bool {
    let part = |name: &str| path.iter().any(|part| part == name);
    part("src") && !part("tests") && !path.ends_with("tests.rs")
}

/// Returns the lines outside of test modules, with their numbers.
fn lines_outside_tests(text: &str) -> Vec<(usize, &str)> {
    let mut lines = (1..).zip(text.lines());
    let mut outside = Vec::new();
    while let Some((number, line)) = lines.next() {
        if line.trim_start() == "#[cfg(test)]" {
            let indent = line.len() - line.trim_start().len();
            lines.by_ref().find(|(_, line)| ends_item(line, indent));
        } else {
            outside.push((number, line));
        }
    }
    outside
}

/// Returns the lines of code outside of tests and comments, with their numbers.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = lines_outside_tests(text).into_iter();
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Returns true if an item with this indentation ends on this line, as formatted by rustfmt: a
/// one-line item ends with a semicolon, a longer one with a brace at the item's indentation.
fn ends_item(line: &str, indent: usize) -> bool {
    let start = line.trim_start();
    let words = start.contains(char::is_alphabetic);
    line.len() - start.len() == indent
        && (start == "}" || start == "};" || words && start.ends_with(';'))
}

/// Returns the positions of banned words in the code.
fn find_banned<'a>(
    path: &'a Path,
    text: &'a str,
    banned: &'a [&str],
) -> impl Iterator<Item = String> + 'a {
    code_lines(text).filter_map(move |(number, line)| {
        let found = banned.iter().find(|word| line.contains(**word))?;
        Some(format!("{}:{number}: {found}", path.display()))
    })
}

fn assert_no_violations(violations: &[String], rule: &str) {
    assert!(violations.is_empty(), "{rule}\n{}", violations.join("\n"));
}

#[test]
fn files_are_short() {
    let long = rust_files().filter_map(|(path, text)| {
        let n = text.lines().count();
        (n >= MAX_LINES).then(|| format!("{}: {n} lines", path.display()))
    });
    let rule = format!("a file has fewer than {MAX_LINES} lines");
    assert_no_violations(&long.collect::<Vec<_>>(), &rule);
}

#[test]
fn every_file_starts_with_a_module_comment() {
    let without_comment = rust_files().filter(|(_, text)| !text.starts_with("//! "));
    let without_comment: Vec<_> =
        without_comment.map(|(path, _)| path.display().to_string()).collect();
    assert_no_violations(&without_comment, "a file starts with a `//! ` comment that describes it");
}

#[test]
fn libraries_do_not_print() {
    let violations: Vec<_> = rust_files()
        .filter(|(path, _)| is_shipped(path) && LIBRARIES.iter().any(|l| path.starts_with(l)))
        .flat_map(|(path, text)| find_banned(&path, &text, &PRINTS).collect::<Vec<_>>())
        .collect();
    assert_no_violations(&violations, "library crates do not print");
}

#[test]
fn shipped_code_does_not_panic() {
    let violations: Vec<_> = rust_files()
        .filter(|(path, _)| is_shipped(path))
        .flat_map(|(path, text)| find_banned(&path, &text, &PANICS).collect::<Vec<_>>())
        .collect();
    assert_no_violations(&violations, "shipped code returns errors instead of panicking");
}

#[test]
fn top_level_has_only_known_entries() {
    let mut unknown = Vec::new();
    for entry in fs::read_dir(root()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_known = TOP_LEVEL.contains(&name.as_str()) || name.starts_with("LICENSE");
        let is_ignored = NOT_SOURCE.contains(&name.as_str()) || name.starts_with('.');
        if !is_known && !is_ignored && !is_output(&path) {
            unknown.push(name);
        }
    }
    assert_no_violations(&unknown, "unknown top-level entries");
}

#[test]
fn files_contain_no_machine_paths() {
    let mut violations = Vec::new();
    for path in source_files() {
        let rust = path.extension().is_some_and(|e| e == "rs");
        if (rust && !is_shipped(&path)) || path.starts_with("tests") {
            continue;
        }
        // Skip binary files.
        let Ok(text) = fs::read_to_string(root().join(&path)) else {
            continue;
        };
        let lines: Vec<_> =
            if rust { lines_outside_tests(&text) } else { (1..).zip(text.lines()).collect() };
        for (number, line) in lines {
            if let Some(found) = MACHINE_PATHS.iter().find(|p| line.contains(**p)) {
                violations.push(format!("{}:{number}: {found}", path.display()));
            }
        }
    }
    assert_no_violations(
        &violations,
        "a file contains no path of a machine; use a relative path or an argument",
    );
}

#[test]
fn embedded_panel_is_small() {
    let files = source_files().into_iter().filter(|path| path.starts_with("assets/mini"));
    let bytes: u64 = files.map(|path| root().join(path).metadata().unwrap().len()).sum();
    assert!(bytes > 0, "assets/mini is empty");
    assert!(
        bytes <= MAX_PANEL_BYTES,
        "assets/mini has {bytes} bytes, expected at most {MAX_PANEL_BYTES}"
    );
}

#[test]
fn tests_and_comments_are_not_code() {
    let text = "//! x.unwrap()\nfn a() {}\n#[cfg(test)]\nuse b;\nfn c() {}\nimpl D {\n    \
                #[cfg(test)]\n    fn e() {\n        f.unwrap();\n    }\n    fn g() {}\n}\n\
                #[cfg(test)]\nmod tests {\n    fn h() { panic!(\"i\") }\n}\nfn j() { k.unwrap() }\n";
    let numbers: Vec<_> = code_lines(text).map(|(number, _)| number).collect();
    assert_eq!(numbers, [2, 5, 6, 11, 12, 17]);
    let found: Vec<_> = find_banned(Path::new("x.rs"), text, &PANICS).collect();
    assert_eq!(found, ["x.rs:17: .unwrap()"]);
}
