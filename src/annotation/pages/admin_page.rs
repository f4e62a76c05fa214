//! The page of the administrator: progress, agreement so far, and the files of results.

use maud::{Markup, html};

use super::layout::Page;
use crate::annotation::journal::{RatingState, TaskState, TaskStatus};
use crate::annotation::results::ResultFile;
use crate::annotation::results::study_agreement::StudyAgreement;
use crate::annotation::study::{Part, StudyPlan};
use crate::statistics::Estimate;

/// What the page shows.
pub(crate) struct AdminPage<'a> {
    /// The study.
    pub(crate) plan: &'a StudyPlan,
    /// What the raters entered.
    pub(crate) ratings: &'a RatingState,
    /// Agreement on every target, and what the raters think of the judges.
    pub(crate) agreement: &'a StudyAgreement,
    /// Number of disagreements that nobody decided.
    pub(crate) undecided: usize,
}

impl AdminPage<'_> {
    /// Returns the page as HTML.
    pub(crate) fn render(&self) -> String {
        let content = html! {
            h1 { "Progress" }
            (self.progress())
            @if !self.plan.config.decides_pairs() {
                h2 { "Agreement so far" }
                (self.agreement())
                p { a href="/admin/disagreements" { "Disagreements to decide: " (self.undecided) } }
            }
            @if !self.agreement.judges.is_empty() { h2 { "Evaluations so far" } (self.judges()) }
            h2 { "Results" }
            p { "Only submitted cases are in the results, apart from the details." }
            ul {
                @for file in ResultFile::of_study(self.plan) {
                    li { a href={ "/admin/results/" (file.name()) } { (file.name()) } " – " (with_code(file.description())) }
                }
            }
        };
        let study = &self.plan.config.name;
        Page { title: "Progress", study, navigation: html! {}, content }.render()
    }

    fn agreement(&self) -> Markup {
        let (icc, icc_hint) = if self.agreement.icc_form.is_one_way() {
            (
                "ICC(1,1) (95 % CI)",
                "ICC(1,1), because not all raters have all cases: of items with equally many ratings.",
            )
        } else {
            ("ICC(2,1) (95 % CI)", "ICC(2,1): of items that all raters submitted.")
        };
        let titles = ["Items", "Alpha (95 % CI)", "Kappa (95 % CI)", icc];
        html! {
            p.hint {
                "Over responses (or pairs) that at least two raters submitted. Alpha: Krippendorff, ordinal for scores and nominal for the preference. \
                 Kappa: Cohen, mean over pairs of raters, quadratic weights for scores. " (icc_hint)
            }
            div.table-frame tabindex="0" role="region" aria-label="Agreement" {
                table {
                    thead { tr {
                        th scope="col" { "Target" }
                        @for title in titles { th.number scope="col" { (title) } }
                    } }
                    tbody {
                        @for target in &self.agreement.targets {
                            tr {
                                th scope="row" { (target.name) }
                                td.number { (target.items) }
                                td.number { (estimate_text(&target.alpha, target.items)) }
                                td.number { (estimate_text(&target.kappa, target.items)) }
                                td.number { @if let Some(icc) = &target.icc { (estimate_text(icc, target.items)) } @else { "–" } }
                            }
                        }
                    }
                }
            }
        }
    }

    fn judges(&self) -> Markup {
        let is_choice = self.plan.compares_judges();
        html! {
            p.hint {
                @if is_choice { "Proportion of evaluations; “equally good” counts as one half." }
                @else { "Mean over cases of the mean over raters." }
            }
            div.table-frame tabindex="0" role="region" aria-label="Evaluations" {
                table {
                    thead { tr {
                        th scope="col" { @if is_choice { "Judges" } @else { "Rating of " (self.judge_name()) } }
                        th.number scope="col" { "Cases" }
                        th.number scope="col" { @if is_choice { "Proportion (95 % CI)" } @else { "Mean score (95 % CI)" } }
                    } }
                    tbody {
                        @for rating in &self.agreement.judges {
                            tr {
                                th scope="row" { (rating.name) }
                                td.number { (rating.mean.n) }
                                td.number { (estimate_text(&rating.mean, rating.mean.n)) }
                            }
                        }
                    }
                }
            }
        }
    }

    /// Returns the name of the judge whose evaluations are rated.
    fn judge_name(&self) -> &str {
        self.plan.judges.first().map_or("", |judge| &judge.judge)
    }

    fn progress(&self) -> Markup {
        html! {
            div.table-frame tabindex="0" role="region" aria-label="Progress by rater" {
                table {
                    thead { tr {
                        th scope="col" { "Rater" }
                        @for title in ["Cases", "Submitted", "Drafts", "Skipped", "Median minutes per case"] {
                            th.number scope="col" { (title) }
                        }
                    } }
                    tbody {
                        @for part in self.parts() {
                            @for (i, rater) in self.plan.config.raters.iter().enumerate() {
                                (progress_row(&self.row_name(&rater.name, part), &self.states(part, i)))
                            }
                        }
                    }
                }
            }
        }
    }

    fn parts(&self) -> Vec<Part> {
        let has_part = |part: &Part| match part {
            Part::Responses => self.plan.config.rates_responses(),
            Part::Evaluations => !self.plan.judges.is_empty(),
        };
        Part::ALL.into_iter().filter(has_part).collect()
    }

    fn row_name(&self, rater: &str, part: Part) -> String {
        match self.parts().len() {
            1 => rater.to_owned(),
            _ => format!("{rater}, {}", part.name()),
        }
    }

    /// Returns the states of the tasks of a part, without tasks that no judge evaluated or that
    /// the rater skipped.
    fn states(&self, part: Part, rater: usize) -> Vec<&TaskState> {
        let states = self.ratings.of_rater(part, rater).iter().enumerate();
        let belongs = |place: usize| {
            let task = self.plan.assigned(rater, place).map(|(assigned, _)| assigned.task);
            let responses = self.ratings.of_rater(Part::Responses, rater).get(place);
            let is_skipped = responses.is_some_and(|state| state.status == TaskStatus::Skipped);
            part.is_responses()
                || !is_skipped && task.is_some_and(|task| self.plan.evaluations(task).is_some())
        };
        states.filter(|(place, _)| belongs(*place)).map(|(_, state)| state).collect()
    }
}

/// Returns a value with its interval, or why there is none. Without items, their number says enough.
fn estimate_text(estimate: &Estimate, items: usize) -> Markup {
    html! {
        @match (estimate.value, estimate.interval) {
            (Ok(value), Ok([low, high])) => { (format!("{value:.2} ({low:.2} to {high:.2})")) }
            (Ok(value), Err(reason)) => { (format!("{value:.2}")) " " span.hint { "(" (reason) ")" } }
            (Err(reason), _) => { "–" @if items > 0 { " " span.hint { "(" (reason) ")" } } }
        }
    }
}

/// Returns a text whose parts between backticks are code.
fn with_code(text: &str) -> Markup {
    html! {
        @for (i, part) in text.split('`').enumerate() {
            @if i % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn progress_row(name: &str, tasks: &[&TaskState]) -> Markup {
    let count = |status| tasks.iter().filter(|task| task.status == status).count();
    html! {
        tr {
            th scope="row" { (name) }
            td.number { (tasks.len()) }
            @for status in [TaskStatus::Submitted, TaskStatus::Draft, TaskStatus::Skipped] {
                td.number { (count(status)) }
            }
            td.number { @if let Some(seconds) = median_seconds(tasks) { (format!("{:.1}", seconds / 60.0)) } @else { "–" } }
        }
    }
}

/// Returns the median time of the submitted cases.
fn median_seconds(tasks: &[&TaskState]) -> Option<f64> {
    let submitted = tasks.iter().filter(|task| task.status == TaskStatus::Submitted);
    let mut seconds: Vec<f64> = submitted.map(|task| task.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    let middle = seconds.len() / 2;
    match seconds.len() {
        0 => None,
        n if n % 2 == 1 => seconds.get(middle).copied(),
        _ => Some(f64::midpoint(*seconds.get(middle - 1)?, *seconds.get(middle)?)),
    }
}
