//! The start of a rater: progress and all cases.

use maud::{Markup, html};

use super::layout::Page;
use crate::annotation::journal::{TaskState, TaskStatus};

/// What the page shows.
pub(crate) struct Overview<'a> {
    /// Name of the study.
    pub(crate) study: &'a str,
    /// Instructions of the study; may be empty.
    pub(crate) instructions: &'a str,
    /// The rater's cases, in order.
    pub(crate) tasks: &'a [TaskState],
    /// The case to go on with; `None` if all are done.
    pub(crate) next: Option<usize>,
}

impl Overview<'_> {
    /// Returns the page as HTML.
    pub(crate) fn render(&self) -> String {
        let count = |status| self.tasks.iter().filter(|task| task.status == status).count();
        let (submitted, skipped) = (count(TaskStatus::Submitted), count(TaskStatus::Skipped));
        let content = html! {
            h1 { "Your cases" }
            p { (submitted) " of " (self.tasks.len()) " submitted" @if skipped > 0 { ", " (skipped) " skipped" } "." }
            progress max=(self.tasks.len()) value=(submitted + skipped) aria-label="Progress" {}
            @if let Some(next) = self.next {
                p { a.button href={ "/case/" (next + 1) } { @if submitted + skipped == 0 { "Start" } @else { "Go on" } } }
            } @else {
                p.done { "You have rated all cases. Thank you." }
            }
            @if !self.instructions.is_empty() { (instructions(self.instructions)) }
            h2 { "All cases" }
            ol.cases {
                @for (i, task) in self.tasks.iter().enumerate() {
                    li { a href={ "/case/" (i + 1) } { "Case " (i + 1) } " – " (task.status.name()) }
                }
            }
        };
        Page { title: "Your cases", study: self.study, navigation: html! {}, content }.render()
    }
}

/// Returns the instructions of a study, one paragraph per line.
pub(crate) fn instructions(text: &str) -> Markup {
    html! {
        section.instructions aria-label="Instructions" {
            @for line in text.lines().filter(|line| !line.trim().is_empty()) { p { (line) } }
        }
    }
}
