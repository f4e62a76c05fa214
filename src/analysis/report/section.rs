//! Sections of the report: a heading and blocks of content.

use crate::support::tables::TableSection;
use crate::support::tables::chart::Chart;

/// A section of the report, independent of the output format.
#[derive(Clone, Debug)]
pub struct ReportSection {
    /// Anchor in the URL of the page.
    pub id: &'static str,
    /// Heading.
    pub title: &'static str,
    /// Content below the heading.
    pub blocks: Vec<SectionBlock>,
}

/// A block of content in a section.
#[derive(Clone, Debug)]
pub enum SectionBlock {
    /// A paragraph.
    Paragraph(String),
    /// Findings, each with its topic.
    Findings(Vec<(String, String)>),
    /// Subheading: the name of the judge that the next blocks describe.
    Judge(String),
    /// A table.
    Table(TableSection),
    /// A table with the index of a case browser entry for each row.
    Cases(TableSection, Vec<usize>),
    /// Title and charts of the table that follows. The charts are side by side if the width allows.
    Charts(String, Vec<Chart>),
}

impl ReportSection {
    /// Creates an empty section.
    pub(super) fn new(id: &'static str, title: &'static str) -> Self {
        Self { id, title, blocks: Vec::new() }
    }

    /// Adds a paragraph.
    pub(super) fn paragraph(&mut self, text: impl Into<String>) {
        self.blocks.push(SectionBlock::Paragraph(text.into()));
    }

    /// Adds a chart.
    pub(super) fn chart(&mut self, chart: Chart) {
        let title = chart.title.clone();
        self.blocks.push(SectionBlock::Charts(title, vec![chart]));
    }

    /// Adds tables.
    pub(super) fn tables(&mut self, tables: impl IntoIterator<Item = TableSection>) {
        self.blocks.extend(tables.into_iter().map(SectionBlock::Table));
    }
}
