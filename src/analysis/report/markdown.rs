//! Markdown output of the report: text and tables, without charts and the case browser.

use std::fmt::Write as _;

use super::section::{ReportSection, SectionBlock};
use crate::support::tables::TableStyle;
use crate::support::text::markdown::{escape_markdown as escape, escape_markdown_lines};

/// Renders the sections as Markdown.
pub fn render_markdown(title: &str, sections: &[ReportSection]) -> String {
    let mut text = format!("# {}\n", escape(title));
    for section in sections {
        text.extend(["\n## ", section.title, "\n"]);
        for block in &section.blocks {
            match block {
                SectionBlock::Paragraph(paragraph) => {
                    text.extend(["\n", &escape_markdown_lines(paragraph), "\n"]);
                }
                SectionBlock::Judge(name) => text.extend(["\n### ", &escape(name), "\n"]),
                SectionBlock::Table(section) | SectionBlock::Cases(section, _) => {
                    text.extend(["\n", &section.render(TableStyle::Markdown, 4)]);
                }
                SectionBlock::Findings(findings) => {
                    text.push('\n');
                    for (topic, finding) in findings {
                        let (topic, finding) = (escape(topic), escape(finding));
                        let _ = writeln!(text, "- **{topic}**: {finding}");
                    }
                }
                SectionBlock::Charts(..) => {}
            }
        }
    }
    text
}
