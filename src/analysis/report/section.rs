//! A part of the page: a heading, and what stands below it.

use crate::support::chart::Chart;
use crate::support::tables::TableSection;

/// A section of the report, in whatever form.
#[derive(Clone, Debug)]
pub struct ReportSection {
    /// Its name in the address of the page.
    pub id: &'static str,
    /// The heading.
    pub title: &'static str,
    /// What stands below it.
    pub blocks: Vec<SectionBlock>,
}

/// What stands in a section.
#[derive(Clone, Debug)]
pub enum SectionBlock {
    /// A paragraph.
    Said(String),
    /// Findings, each with what it is about.
    Findings(Vec<(String, String)>),
    /// The name of the judge that the following is about.
    Judge(String),
    /// A table.
    Table(TableSection),
    /// A table whose rows are about entries of the browser, by their numbers.
    Cases(TableSection, Vec<usize>),
    /// A title and pictures of the table that follows, side by side where there is room.
    Charts(String, Vec<Chart>),
}

impl ReportSection {
    /// A section without anything in it.
    pub(super) fn new(id: &'static str, title: &'static str) -> Self {
        Self {
            id,
            title,
            blocks: Vec::new(),
        }
    }

    /// Adds a paragraph.
    pub(super) fn say(&mut self, text: impl Into<String>) {
        self.blocks.push(SectionBlock::Said(text.into()));
    }

    /// Adds a chart.
    pub(super) fn chart(&mut self, chart: Chart) {
        let title = chart.title.clone();
        self.blocks.push(SectionBlock::Charts(title, vec![chart]));
    }

    /// Adds tables.
    pub(super) fn tables(&mut self, tables: impl IntoIterator<Item = TableSection>) {
        self.blocks
            .extend(tables.into_iter().map(SectionBlock::Table));
    }
}
