//! Masks the parts of an output that differ between runs or machines.

use regex::{Captures, Regex};

use crate::folder::Folder;

/// Decimals to which longer numbers are rounded. Their last digits differ between processors.
const DECIMALS: usize = 4;

/// Replaces paths, times and versions, and rounds long decimals.
pub(super) fn mask(folder: &Folder, text: &str) -> String {
    let path = folder.path("");
    let canonical = path.canonicalize().unwrap();
    let mut text = text.to_owned();
    for path in [canonical, path] {
        let path = path.display().to_string();
        text = text.replace(path.trim_end_matches('/'), "[FOLDER]");
    }
    // Progress lines appear every ten seconds, so only on slow machines.
    text = replace(&text, r"(?m)^\d+( of \d+)? (cases|pairs), \d+ verdicts?\b.*\n", "");
    text = replace(&text, r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "[TIME]");
    // The error numbers depend on the operating system.
    text = replace(&text, r"\(os error \d+\)", "(os error [N])");
    let duration = r"\bin (\d+ h \d\d min|\d+ min \d\d s|\d+(\.\d+)? s)\b";
    text = replace(&text, duration, "in [DURATION]");
    // The size of a report changes with its style sheet.
    text = replace(&text, r"\b\d+(\.\d+)? [KM]iB\b", "[SIZE]");
    text = text.replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    round(&text)
}

/// Replaces the commit and the features in the output of `--version`.
pub(super) fn mask_build(text: &str) -> String {
    let build = r"\([^(),]+, features: [^()]+\)";
    replace(text, build, "([COMMIT], features: [FEATURES])")
}

fn replace(text: &str, pattern: &str, with: &str) -> String {
    Regex::new(pattern).unwrap().replace_all(text, with).into_owned()
}

fn round(text: &str) -> String {
    let long = Regex::new(r"-?\b\d+\.\d{5,}(e-?\d+)?").unwrap();
    let rounded = |found: &Captures| {
        let value: f64 = found[0].parse().unwrap();
        // Adding zero makes -0 positive.
        let scale = 10_f64.powi(i32::try_from(DECIMALS).unwrap());
        format!("{:.DECIMALS$}", (value * scale).round() / scale + 0.0)
    };
    long.replace_all(text, rounded).into_owned()
}

#[test]
fn mask_replaces_only_varying_parts() {
    let folder = Folder::empty();
    let path = folder.path("out/records.jsonl");
    let text = format!(
        "{} in 3.2 s, 70 KiB\n3 of 12 cases, 3 verdicts, 1.2/s\n12 pairs, 2026-01-02T03:04:05Z\n\
         0.123456789 -0.00000001 1.25 12 min 2.220446049250313e-16\nacem3 {} (os error 2)\n",
        path.display(),
        env!("CARGO_PKG_VERSION")
    );
    let expected = "[FOLDER]/out/records.jsonl in [DURATION], [SIZE]\n12 pairs, [TIME]\n\
                    0.1235 0.0000 1.25 12 min 0.0000\nacem3 [VERSION] (os error [N])\n";
    assert_eq!(mask(&folder, &text), expected);
    assert_eq!(
        mask_build("acem3 1 (0123abc-dirty, features: cpu, cuda)\n"),
        "acem3 1 ([COMMIT], features: [FEATURES])\n"
    );
}
