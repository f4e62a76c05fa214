//! Build script: tells the compiler the text of `acem3 --version`.
//!
//! The text is `0.1.0 (2cb776e, features: cpu)`: the version, the commit with `-dirty` if what is
//! compiled differs from it, and the enabled features. The script runs again only when a file that is
//! compiled changes, which compiles the program anyway, or when the commit changes.

use std::env;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is compiled into the program, from the top of the repository.
const COMPILED: [&str; 8] = [
    "Cargo.toml",
    "Cargo.lock",
    "src",
    "vision",
    "projector",
    "experts",
    "conclusion",
    "assets/mini",
];
/// Names the commit where the build has no repository, as in a container.
const COMMIT: &str = "ACEM3_BUILD_COMMIT";

fn main() -> io::Result<()> {
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let is_repository = is_repository();
    let commit = match env::var(COMMIT) {
        Ok(commit) if !commit.is_empty() => Some(commit),
        _ => is_repository.then(commit).flatten(),
    };
    let commit = commit.unwrap_or_else(|| "unknown commit".to_owned());
    let features = features().join(", ");
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "cargo::rustc-env=ACEM3_VERSION={version} ({commit}, features: {features})"
    )?;
    writeln!(out, "cargo::rerun-if-env-changed={COMMIT}")?;
    let heads = if is_repository { heads() } else { Vec::new() };
    let compiled = COMPILED.iter().map(PathBuf::from);
    // A path that does not exist would count as changed in every build.
    let watched = compiled.chain(heads);
    for path in watched.filter(|path| path.exists()) {
        writeln!(out, "cargo::rerun-if-changed={}", path.display())?;
    }
    Ok(())
}

/// The device types the program can compute on, and the other enabled features.
fn features() -> Vec<String> {
    let set = env::vars().filter_map(|(name, _)| {
        let feature = name.strip_prefix("CARGO_FEATURE_")?;
        Some(feature.to_lowercase().replace('_', "-"))
    });
    let mut features: Vec<String> = set.filter(|feature| feature != "default").collect();
    features.sort();
    features.insert(0, "cpu".to_owned());
    features
}

/// Whether the workspace is the top of a git repository, and git can be run.
fn is_repository() -> bool {
    let canonical = |path: &OsStr| Path::new(path).canonicalize().ok();
    let top = git(["rev-parse", "--show-toplevel"]).and_then(|top| canonical(top.as_ref()));
    let here = env::var_os("CARGO_MANIFEST_DIR").and_then(|here| canonical(&here));
    top.is_some() && top == here
}

/// The commit in short, with `-dirty` if what is compiled differs from it.
fn commit() -> Option<String> {
    let commit = git(["rev-parse", "--short=7", "HEAD"])?;
    let status = ["status", "--porcelain", "--untracked-files=all", "--"];
    let changes = git(status.into_iter().chain(COMPILED))?;
    let mark = if changes.is_empty() { "" } else { "-dirty" };
    Some(format!("{commit}{mark}"))
}

/// The files that change when another commit is checked out or made.
fn heads() -> Vec<PathBuf> {
    let file = |name: &str| git(["rev-parse", "--git-path", name]).map(PathBuf::from);
    let branch = git(["symbolic-ref", "--quiet", "HEAD"]);
    let branch = branch.and_then(|branch| file(&branch));
    let is_packed = branch.as_ref().is_some_and(|branch| !branch.exists());
    let packed = is_packed.then(|| file("packed-refs")).flatten();
    let heads = [file("HEAD"), file("logs/HEAD"), branch, packed];
    heads.into_iter().flatten().collect()
}

/// What git prints, if it succeeds.
fn git(arguments: impl IntoIterator<Item: AsRef<OsStr>>) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = output.status.success().then_some(output.stdout)?;
    Some(String::from_utf8(text).ok()?.trim().to_owned())
}
