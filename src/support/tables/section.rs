//! Tables with a title and notes.

use super::style::TableStyle;
use super::table::Table;
use super::wrap::{protect_spaces, wrap};
use crate::support::text::escape_control_chars;
use crate::support::text::markdown::{
    escape_markdown, escape_markdown_lines, escape_markdown_start,
};

/// A table with its title and the notes below it.
#[derive(Clone, Debug, Default)]
pub struct TableSection {
    /// The title; may be empty.
    pub title: String,
    /// The table.
    pub table: Table,
    /// Notes, one sentence or definition each.
    pub notes: Vec<String>,
}

impl TableSection {
    /// Creates a section without notes.
    pub fn new(title: impl Into<String>, table: Table) -> Self {
        Self { title: title.into(), table, notes: Vec::new() }
    }

    /// Returns the section with these notes.
    #[must_use]
    pub fn with_notes(mut self, notes: Vec<String>) -> Self {
        self.notes = notes;
        self
    }

    /// Renders title, table and notes. `level`: level of the heading in Markdown.
    pub fn render(&self, style: TableStyle, level: usize) -> String {
        let mut text = String::new();
        if !self.title.is_empty() {
            text = heading(&self.title, style, level) + "\n";
        }
        if !self.table.header.is_empty() {
            text += &self.table.render(style);
        }
        if !self.notes.is_empty() && !self.table.header.is_empty() {
            text.push('\n');
        }
        for note in &self.notes {
            match style {
                TableStyle::Terminal { width } => {
                    for line in wrap(&protect_spaces(&escape_control_chars(note)), width, 2) {
                        text += &line;
                        text.push('\n');
                    }
                }
                TableStyle::Markdown => text.extend(["- ", &escape_markdown_start(note), "\n"]),
            }
        }
        text
    }
}

/// Renders an introduction and the sections below it. Lines of the introduction stay separate.
pub fn render_sections(intro: &str, sections: &[TableSection], style: TableStyle) -> String {
    let mut text = String::new();
    match style {
        TableStyle::Terminal { width } => {
            for line in intro.lines() {
                let lines = wrap(&protect_spaces(&escape_control_chars(line)), width, 2);
                text.extend(lines.into_iter().map(|line| line + "\n"));
            }
        }
        TableStyle::Markdown if intro.is_empty() => {}
        TableStyle::Markdown => text = escape_markdown_lines(intro) + "\n",
    }
    for section in sections {
        text.push('\n');
        text += &section.render(style, 2);
    }
    text
}

fn heading(title: &str, style: TableStyle, level: usize) -> String {
    match style {
        TableStyle::Terminal { width } => {
            let lines = wrap(&protect_spaces(&escape_control_chars(title)), width, 2);
            lines.into_iter().map(|line| line + "\n").collect()
        }
        TableStyle::Markdown => format!("{} {}\n", "#".repeat(level), escape_markdown(title)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_have_title_table_and_notes() {
        let mut table = Table::new(["model", "score"]);
        table.push_row(["a<b", "1"]);
        let section = TableSection::new("scores", table);
        let section = section.with_notes(vec!["score: mean of the final scores".to_owned()]);
        let terminal = TableStyle::Terminal { width: 24 };
        let text = render_sections("two\nlines", std::slice::from_ref(&section), terminal);
        let expected = "two\nlines\n\nscores\n\nmodel  score\na<b        1\n\n\
             score: mean of the final\n  scores\n";
        assert_eq!(text, expected);
        let section = section.with_notes(vec!["*  fewer than 30 cases".to_owned()]);
        let text = render_sections("two\nlines", &[section], TableStyle::Markdown);
        let expected = "two  \nlines\n\n## scores\n\n| model | score |\n| --- | ---: |\n| a&lt;b | 1 |\n\n\
             - \\*  fewer than 30 cases\n";
        assert_eq!(text, expected);
    }
}
