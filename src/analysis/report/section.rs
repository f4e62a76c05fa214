//! A part of the page: a heading, and what stands below it.

use crate::analysis::agreement::Part;
use crate::support::chart::Chart;

/// A section of the report, in whatever form.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name in the address of the page.
    pub id: &'static str,
    /// The heading.
    pub title: &'static str,
    /// What stands below it.
    pub blocks: Vec<Block>,
}

/// What stands in a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// A paragraph.
    Said(String),
    /// Findings, each with what it is about.
    Findings(Vec<(String, String)>),
    /// The name of the judge that the following is about.
    Judge(String),
    /// A table.
    Table(Part),
    /// A table whose rows are about entries of the browser, by their numbers.
    Cases(Part, Vec<usize>),
    /// A title and pictures of the table that follows, side by side where there is room.
    Charts(String, Vec<Chart>),
}

impl Section {
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
        self.blocks.push(Block::Said(text.into()));
    }

    /// Adds a chart.
    pub(super) fn chart(&mut self, chart: Chart) {
        let title = chart.title.clone();
        self.blocks.push(Block::Charts(title, vec![chart]));
    }

    /// Adds tables.
    pub(super) fn tables(&mut self, parts: impl IntoIterator<Item = Part>) {
        self.blocks.extend(parts.into_iter().map(Block::Table));
    }
}
