//! Build script: passes the text of `acem3 --version` to the compiler.
//!
//! The text is `0.1.0 (2cb776e, features: cpu)`: the version, the commit with `-dirty` if compiled
//! files differ from it, and the enabled features. Cargo runs the script again if a compiled file
//! or the commit changes.

use std::env;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiled files and folders, relative to the repository.
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
/// Environment variable with the commit, for builds without a repository such as containers.
const COMMIT_VARIABLE: &str = "ACEM3_BUILD_COMMIT";

fn main() -> io::Result<()> {
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let is_repository = is_repository();
    let commit = match env::var(COMMIT_VARIABLE) {
        Ok(commit) if !commit.is_empty() => Some(commit),
        _ => is_repository.then(commit).flatten(),
    };
    let commit = commit.unwrap_or_else(|| "unknown commit".to_owned());
    let features = features().join(", ");
    let mut out = io::stdout().lock();
    writeln!(out, "cargo::rustc-env=ACEM3_VERSION={version} ({commit}, features: {features})")?;
    writeln!(out, "cargo::rerun-if-env-changed={COMMIT_VARIABLE}")?;
    let commit_files = if is_repository { commit_files() } else { Vec::new() };
    let compiled = COMPILED.iter().map(PathBuf::from);
    // Cargo treats a missing path as changed in every build.
    let watched = compiled.chain(commit_files);
    for path in watched.filter(|path| path.exists()) {
        writeln!(out, "cargo::rerun-if-changed={}", path.display())?;
    }
    Ok(())
}

/// Returns `cpu` and the enabled features.
fn features() -> Vec<String> {
    let enabled = env::vars().filter_map(|(name, _)| {
        let feature = name.strip_prefix("CARGO_FEATURE_")?;
        Some(feature.to_lowercase().replace('_', "-"))
    });
    let mut features: Vec<String> = enabled.filter(|feature| feature != "default").collect();
    features.sort();
    features.insert(0, "cpu".to_owned());
    features
}

/// Returns true if git is installed and the package is the root of a repository.
fn is_repository() -> bool {
    let canonical = |path: &OsStr| Path::new(path).canonicalize().ok();
    let top = git(["rev-parse", "--show-toplevel"]).and_then(|top| canonical(top.as_ref()));
    let package = env::var_os("CARGO_MANIFEST_DIR").and_then(|path| canonical(&path));
    top.is_some() && top == package
}

/// Returns the short commit, with `-dirty` if compiled files differ from it.
fn commit() -> Option<String> {
    let commit = git(["rev-parse", "--short=7", "HEAD"])?;
    let status = ["status", "--porcelain", "--untracked-files=all", "--"];
    let changes = git(status.into_iter().chain(COMPILED))?;
    let suffix = if changes.is_empty() { "" } else { "-dirty" };
    Some(format!("{commit}{suffix}"))
}

/// Returns the files that change with the current commit.
fn commit_files() -> Vec<PathBuf> {
    let file = |name: &str| git(["rev-parse", "--git-path", name]).map(PathBuf::from);
    let branch = git(["symbolic-ref", "--quiet", "HEAD"]);
    let branch = branch.and_then(|branch| file(&branch));
    let is_packed = branch.as_ref().is_some_and(|branch| !branch.exists());
    let packed = is_packed.then(|| file("packed-refs")).flatten();
    let files = [file("HEAD"), file("logs/HEAD"), branch, packed];
    files.into_iter().flatten().collect()
}

/// Runs git. Returns its output if it succeeds.
fn git(arguments: impl IntoIterator<Item: AsRef<OsStr>>) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = output.status.success().then_some(output.stdout)?;
    Some(String::from_utf8(text).ok()?.trim().to_owned())
}
