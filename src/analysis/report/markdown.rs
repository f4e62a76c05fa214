//! Markdown output of the report: text and tables, without charts and the case browser.

use std::fmt::Write as _;

use super::section::{ReportSection, SectionBlock};
use crate::support::tables::TableStyle;
use crate::support::text::markdown as shown;

/// Renders the sections as Markdown.
pub fn markdown(title: &str, sections: &[ReportSection]) -> String {
    let mut text = format!("# {}\n", shown(title));
    for section in sections {
        text.extend(["\n## ", section.title, "\n"]);
        for block in &section.blocks {
            match block {
                SectionBlock::Said(said) => {
                    text.push('\n');
                    // Two trailing spaces are a line break in Markdown.
                    let lines: Vec<String> = said.lines().map(shown).collect();
                    text.extend([&lines.join("  \n"), "\n"]);
                }
                SectionBlock::Judge(name) => text.extend(["\n### ", &shown(name), "\n"]),
                SectionBlock::Table(section) | SectionBlock::Cases(section, _) => {
                    text.extend(["\n", &section.render(TableStyle::Markdown, 4)]);
                }
                SectionBlock::Findings(findings) => {
                    text.push('\n');
                    for (about, finding) in findings {
                        let (about, finding) = (shown(about), shown(finding));
                        let _ = writeln!(text, "- **{about}**: {finding}");
                    }
                }
                SectionBlock::Charts(..) => {}
            }
        }
    }
    text
}
