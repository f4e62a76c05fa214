//! Links between the Markdown files lead to files and headings that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::tidy::{root, source_files};

/// Returns the anchors of a text: those of its headings, as GitHub makes them, and explicit ones.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        title.chars().filter(is_kept).collect::<String>().replace(' ', "-")
    });
    let explicit = text.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next());
    headings.chain(explicit.map(str::to_owned)).collect()
}

/// Returns the targets of the links of a text, without those to web pages.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    links.filter(|target| !target.contains("://") && !target.contains(char::is_whitespace))
}

#[test]
fn links_lead_to_files_and_headings() {
    let is_markdown = |path: &PathBuf| path.extension().is_some_and(|end| end == "md");
    let texts: BTreeMap<PathBuf, String> = (source_files().into_iter().filter(is_markdown))
        .map(|path| (path.clone(), fs::read_to_string(root().join(&path)).unwrap()))
        .collect();
    let base = root().canonicalize().unwrap();
    let mut dead = Vec::new();
    let mut links = 0;
    for (file, text) in &texts {
        for target in targets(text) {
            links += 1;
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let folder = file.parent().unwrap_or(Path::new(""));
            let linked = if path.is_empty() { file.clone() } else { folder.join(path) };
            let found = base.join(linked).canonicalize();
            let text =
                found.as_ref().ok().and_then(|path| texts.get(path.strip_prefix(&base).ok()?));
            let lacks_anchor = text.is_some_and(|text| !anchors(text).contains(anchor));
            if found.is_err() || (!anchor.is_empty() && lacks_anchor) {
                dead.push(format!("{}: {target}", file.display()));
            }
        }
    }
    assert!(links > 50, "{links} links");
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

#[test]
fn anchors_are_those_of_headings_and_explicit() {
    let found = anchors("# A `b`: c, d\ntext\n<a id=\"e\"></a>\n## F-g\n");
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a-b-c-d", "e", "f-g"]);
}
