//! The page of a case: image, question, responses, what is rated besides them, and the form.

use maud::{Markup, html};

use super::field_names::{ACTION, COMMENT, MAX_TEXT, OPENED, PAGE, REASON};
use super::image_view::ImageView;
use super::layout::Page;
use super::overview_page::instructions;
use super::rating_fields::response_name;
use crate::annotation::journal::{TaskState, TaskStatus};

/// Id of the form of the page.
pub(crate) const RATING_FORM: &str = "rating";

/// What the page shows. Nothing of it names a model or a judge.
pub(crate) struct CasePage<'a> {
    /// Name of the study.
    pub(crate) study: &'a str,
    /// Instructions of the study; may be empty.
    pub(crate) instructions: &'a str,
    /// Where the page is among the rater's pages.
    pub(crate) position: PagePosition<'a>,
    /// The question.
    pub(crate) question: &'a str,
    /// The responses, in the order in which the rater sees them.
    pub(crate) responses: &'a [&'a str],
    /// The image, if the case has one.
    pub(crate) image: Option<ImageView>,
    /// Texts below the responses, such as the evaluations of judges.
    pub(crate) details: Markup,
    /// The fields of the form.
    pub(crate) fields: Markup,
    /// Status, comment and reason.
    pub(crate) state: &'a TaskState,
    /// True if the answers cannot change any more.
    pub(crate) is_final: bool,
    /// What is missing in a submitted form.
    pub(crate) missing: &'a [String],
    /// What just happened, such as "Saved".
    pub(crate) notice: &'a str,
    /// Seconds since 1970.
    pub(crate) opened: f64,
    /// Says which rater and task the form belongs to.
    pub(crate) page: &'a str,
}

/// Where a page is among the rater's pages of one kind.
pub(crate) struct PagePosition<'a> {
    /// What a page shows, such as "Case".
    pub(crate) name: &'a str,
    /// Address without the number.
    pub(crate) path: &'a str,
    /// The places of all pages, in order.
    pub(crate) places: &'a [usize],
    /// The place of this page. Its address has the next number.
    pub(crate) place: usize,
}

impl PagePosition<'_> {
    /// Returns the address of this page.
    fn address(&self) -> String {
        format!("{}/{}", self.path, self.place + 1)
    }

    fn index(&self) -> usize {
        self.places.iter().position(|place| *place == self.place).unwrap_or_default()
    }

    fn title(&self) -> String {
        format!("{} {} of {}", self.name, self.index() + 1, self.places.len())
    }

    fn navigation(&self) -> Markup {
        let before = self.index().checked_sub(1).and_then(|index| self.places.get(index));
        let after = self.places.get(self.index() + 1);
        html! {
            a href="/" { "All cases" }
            @if let Some(place) = before { a href={ (self.path) "/" (place + 1) } { "Previous" } }
            @if let Some(place) = after { a href={ (self.path) "/" (place + 1) } { "Next" } }
        }
    }
}

impl CasePage<'_> {
    /// Returns the page as HTML.
    pub(crate) fn render(&self) -> String {
        let title = self.position.title();
        let content = html! {
            h1 { (title) }
            p.status role="status" {
                @if self.notice.is_empty() { (self.position.name) ": " (self.state.status.name()) "." } @else { (self.notice) }
            }
            @if !self.missing.is_empty() { (self.problems()) }
            @if !self.instructions.is_empty() {
                details { summary { "Instructions" } (instructions(self.instructions)) }
            }
            div.work {
                // The case stays in view beside a long form, and scrolls by itself.
                div.case role="region" aria-label="Case" tabindex="0" {
                    @if let Some(image) = &self.image { (image.render()) }
                    div.texts {
                        section { h2 { "Question" } p.text dir="auto" { (self.question) } }
                        div.sides {
                            @for (i, response) in self.responses.iter().enumerate() {
                                section { h2 { (response_name(self.responses.len(), i)) } p.text dir="auto" { (response) } }
                            }
                        }
                    }
                }
                div { (self.details) (self.form()) }
            }
        };
        let navigation = self.position.navigation();
        Page { title: &title, study: self.study, navigation, content }.render()
    }

    fn form(&self) -> Markup {
        html! {
            form.rating id=(RATING_FORM) method="post" action=(self.position.address()) {
                fieldset.all disabled[self.is_final] {
                    legend.visually-hidden { "Your ratings" }
                    input type="hidden" name=(OPENED) value=(self.opened);
                    input type="hidden" name=(PAGE) value=(self.page);
                    (self.fields)
                    label.comment { "Comment (optional)" textarea dir="auto" name=(COMMENT) rows="3" maxlength=(MAX_TEXT) { (self.state.answers.comment) } }
                    @if !self.is_final { (self.buttons()) }
                }
            }
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
