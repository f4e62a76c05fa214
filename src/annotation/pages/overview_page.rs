//! The start of a rater: progress and all cases.

use maud::{Markup, html};

use super::layout::Page;
use crate::annotation::journal::{TaskState, TaskStatus};
use crate::support::text::format_count;

/// What the page shows.
pub(crate) struct Overview<'a> {
    /// Name of the study.
    pub(crate) study: &'a str,
    /// Instructions of the study; may be empty.
    pub(crate) instructions: &'a str,
    /// The rater's cases, in order.
    pub(crate) tasks: &'a [TaskState],
    /// The places of the cases whose responses are rated.
    pub(crate) places: &'a [usize],
    /// The case to go on with; `None` if all are done.
    pub(crate) next: Option<usize>,
    /// The part about evaluations of judges, if the study has one.
    pub(crate) evaluations: Option<EvaluationOverview<'a>>,
}

/// The part of the page about evaluations of judges.
pub(crate) struct EvaluationOverview<'a> {
    /// States of the evaluations, in the order of the cases.
    pub(crate) tasks: &'a [TaskState],
    /// The places of the evaluations that the rater may see; none before the cases are done.
    pub(crate) places: &'a [usize],
    /// True if the rater has seen an evaluation.
    pub(crate) is_opened: bool,
    /// True if the rater also rates responses, which are final when the first evaluation is opened.
    pub(crate) locks_ratings: bool,
    /// The evaluation to go on with; `None` if all are done.
    pub(crate) next: Option<usize>,
}

impl Overview<'_> {
    /// Returns the page as HTML.
    pub(crate) fn render(&self) -> String {
        let content = html! {
            h1 { "Your cases" }
            @if !self.places.is_empty() {
                (progress(self.tasks, self.places, "cases"))
                @if let Some(next) = self.next {
                    p { a.button href={ "/case/" (next + 1) } { @if is_untouched(self.tasks) { "Start" } @else { "Go on" } } }
                } @else {
                    p.done { "All cases are done." @if self.evaluations.is_none() { " Thank you." } }
                }
            }
            @if self.tasks.is_empty() { p { "No cases are assigned to you. There is nothing to do." } }
            @else if let Some(evaluations) = &self.evaluations { (evaluations.start(self.next.is_none())) }
            @if !self.instructions.is_empty() { (instructions(self.instructions)) }
            @if !self.places.is_empty() {
                h2 { "All cases" }
                (task_list("Case", "/case", self.tasks, self.places))
            }
            @if let Some(evaluations) = self.evaluations.as_ref().filter(|evaluations| evaluations.is_opened) {
                h2 { "All evaluations" }
                (task_list("Evaluation", "/evaluation", evaluations.tasks, evaluations.places))
            }
        };
        Page { title: "Your cases", study: self.study, navigation: html! {}, content }.render()
    }
}

impl EvaluationOverview<'_> {
    /// `is_ready`: true if no case is left to be rated.
    fn start(&self, is_ready: bool) -> Markup {
        html! {
            section.aspect {
                h2 { "Evaluations by judges" }
                @if self.places.is_empty() && is_ready {
                    p { "There is no evaluation to rate: none of your submitted cases has one." }
                } @else if self.places.is_empty() {
                    p { "Part two opens after you have submitted or skipped all cases." }
                } @else if !self.is_opened {
                    p {
                        @if self.locks_ratings { "Part two: " }
                        (format_count(self.places.len() as u64, "case"))
                        " with evaluations of the answers by programs."
                        @if self.locks_ratings { " When you start it, your own ratings are final, and skipped cases stay skipped." }
                    }
                    form method="post" action="/evaluations/start" { button.primary type="submit" { @if self.locks_ratings { "Start part two" } @else { "Start" } } }
                } @else {
                    (progress(self.tasks, self.places, "evaluations"))
                    @if let Some(next) = self.next {
                        p { a.button href={ "/evaluation/" (next + 1) } { "Go on" } }
                    } @else {
                        p.done { "You have rated all evaluations. Thank you." }
                    }
                }
            }
        }
    }
}

fn is_untouched(tasks: &[TaskState]) -> bool {
    tasks.iter().all(|task| matches!(task.status, TaskStatus::Open | TaskStatus::Draft))
}

/// Returns how many tasks are done.
fn progress(tasks: &[TaskState], places: &[usize], name: &str) -> Markup {
    let states = || places.iter().filter_map(|place| tasks.get(*place));
    let count = |status| states().filter(|task| task.status == status).count();
    let (submitted, skipped) = (count(TaskStatus::Submitted), count(TaskStatus::Skipped));
    html! {
        p { (submitted) " of " (places.len()) " submitted" @if skipped > 0 { ", " (skipped) " skipped" } "." }
        progress max=(places.len()) value=(submitted + skipped) aria-label={ "Progress, " (name) } {}
    }
}

fn task_list(name: &str, path: &str, tasks: &[TaskState], places: &[usize]) -> Markup {
    html! {
        ol.cases {
            @for (i, place) in places.iter().enumerate() {
                @if let Some(task) = tasks.get(*place) {
                    li { a href={ (path) "/" (place + 1) } { (name) " " (i + 1) } " – " (task.status.name()) }
                }
            }
        }
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
