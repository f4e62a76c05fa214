//! The report as Markdown: the same words and tables, without charts and cases.

use std::fmt::Write as _;

use super::section::{Block, Section};
use crate::analysis::agreement::Part;
use crate::support::text::markdown as shown;

/// The sections as Markdown.
pub fn markdown(title: &str, sections: &[Section]) -> String {
    let mut text = format!("# {}\n", shown(title));
    for section in sections {
        text.extend(["\n## ", section.title, "\n"]);
        for block in &section.blocks {
            match block {
                Block::Said(said) => {
                    text.push('\n');
                    // A line of its own in Markdown ends with two spaces.
                    let lines: Vec<String> = said.lines().map(shown).collect();
                    text.extend([&lines.join("  \n"), "\n"]);
                }
                Block::Judge(name) => text.extend(["\n### ", &shown(name), "\n"]),
                Block::Table(part) | Block::Cases(part, _) => table(&mut text, part),
                Block::Findings(findings) => {
                    text.push('\n');
                    for (about, finding) in findings {
                        let (about, finding) = (shown(about), shown(finding));
                        let _ = writeln!(text, "- **{about}**: {finding}");
                    }
                }
                Block::Charts(..) => {}
            }
        }
    }
    text
}

fn table(text: &mut String, part: &Part) {
    text.extend(["\n#### ", &shown(&part.title), "\n\n"]);
    *text += &part.grid.markdown();
    if !part.notes.is_empty() {
        text.push('\n');
    }
    for note in &part.notes {
        text.extend(["- ", &shown(note), "\n"]);
    }
}
