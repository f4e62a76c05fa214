//! The page of a case: image, question, responses and the form.

use maud::{Markup, html};

use super::field_names::{ACTION, COMMENT, MAX_TEXT, OPENED, REASON};
use super::layout::Page;
use super::overview_page::instructions;
use super::rating_fields::{RatingFields, response_name};
use crate::annotation::journal::{TaskState, TaskStatus};
use crate::annotation::study::StudyPlan;

/// What the page shows. Nothing of it names a model.
pub(crate) struct CasePage<'a> {
    /// The study.
    pub(crate) plan: &'a StudyPlan,
    /// Place of the case in the rater's order.
    pub(crate) place: usize,
    /// Number of the rater's cases.
    pub(crate) count: usize,
    /// The question.
    pub(crate) question: &'a str,
    /// The responses, in the order in which the rater sees them.
    pub(crate) responses: &'a [&'a str],
    /// The image, if the case has one.
    pub(crate) image: Option<CaseImage>,
    /// Status and answers. The answers are in the order in which the rater sees the responses.
    pub(crate) state: &'a TaskState,
    /// What is missing in a submitted form.
    pub(crate) missing: &'a [String],
    /// What just happened, such as "Saved".
    pub(crate) notice: &'a str,
    /// Seconds since 1970.
    pub(crate) opened: f64,
}

/// How the image of a case is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CaseImage {
    /// True if it has a window.
    pub(crate) is_dicom: bool,
    /// Center and width that the rater chose.
    pub(crate) window: Option<[f64; 2]>,
}

impl CasePage<'_> {
    /// Returns the page as HTML.
    pub(crate) fn render(&self) -> String {
        let title = format!("Case {} of {}", self.place + 1, self.count);
        let is_final = self.state.status == TaskStatus::Submitted;
        let content = html! {
            h1 { (title) }
            p.status role="status" {
                @if self.notice.is_empty() { "This case is " (self.state.status.name()) "." } @else { (self.notice) }
            }
            @if !self.missing.is_empty() { (self.problems()) }
            @if !self.plan.config.instructions.is_empty() {
                details { summary { "Instructions" } (instructions(&self.plan.config.instructions)) }
            }
            div.case {
                @if let Some(image) = self.image { (self.figure(image)) }
                div.texts {
                    section { h2 { "Question" } p.text dir="auto" { (self.question) } }
                    div.sides {
                        @for (i, response) in self.responses.iter().enumerate() {
                            section { h2 { (response_name(self.responses.len(), i)) } p.text dir="auto" { (response) } }
                        }
                    }
                }
            }
            form.rating method="post" action={ "/case/" (self.place + 1) } {
                fieldset.all disabled[is_final] {
                    legend.visually-hidden { "Your ratings" }
                    input type="hidden" name=(OPENED) value=(self.opened);
                    ({
                        let (answers, responses) = (&self.state.answers, self.responses.len());
                        let has_image = self.image.is_some();
                        RatingFields { plan: self.plan, answers, responses, has_image }.render()
                    })
                    label.comment { "Comment (optional)" textarea dir="auto" name=(COMMENT) rows="3" maxlength=(MAX_TEXT) { (self.state.answers.comment) } }
                    @if !is_final { (self.buttons()) }
                }
            }
        };
        Page {
            title: &title,
            study: &self.plan.config.name,
            navigation: self.navigation(),
            content,
        }
        .render()
    }

    fn navigation(&self) -> Markup {
        html! {
            a href="/" { "All cases" }
            @if self.place > 0 { a href={ "/case/" (self.place) } { "Previous" } }
            @if self.place + 1 < self.count { a href={ "/case/" (self.place + 2) } { "Next" } }
        }
    }

    fn problems(&self) -> Markup {
        html! {
            section.problems role="alert" aria-labelledby="problems" {
                h2 id="problems" { "Not submitted yet" }
                p { "Your entries are saved as a draft. Missing:" }
                ul { @for text in self.missing { li { (text) } } }
            }
        }
    }

    fn figure(&self, image: CaseImage) -> Markup {
        let path = format!("/case/{}/image", self.place + 1);
        let source = match image.window {
            Some([center, width]) => format!("{path}?center={center}&width={width}"),
            None => path,
        };
        html! {
            figure.image {
                div.viewer { img src=(source) alt="Case image"; }
                figcaption {
                    a href=(source) target="_blank" rel="noopener" { "Open in full size" }
                    @if image.is_dicom { (self.window_form(image.window)) }
                }
            }
        }
    }

    /// Returns the form that changes the window of a DICOM image.
    fn window_form(&self, window: Option<[f64; 2]>) -> Markup {
        let [center, width] = window.map_or([None, None], |window| window.map(Some));
        html! {
            form.window method="get" action={ "/case/" (self.place + 1) } {
                label { "Center" input type="number" step="any" name="center" value=[center] required; }
                label { "Width" input type="number" step="any" min="1" name="width" value=[width] required; }
                button type="submit" { "Apply window" }
            }
        }
    }

    fn buttons(&self) -> Markup {
        html! {
            div.buttons {
                button type="submit" name=(ACTION) value="save" { "Save draft" }
                button.primary type="submit" name=(ACTION) value="submit" { "Submit and go on" }
            }
            details.skip open[self.state.status == TaskStatus::Skipped] {
                summary { "Skip this case" }
                label { "Reason" input type="text" dir="auto" name=(REASON) maxlength=(MAX_TEXT) value=(self.state.answers.reason); }
                button type="submit" name=(ACTION) value="skip" { "Skip" }
            }
        }
    }
}
