//! The task that a rater asks for.

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;

use super::access::Visitor;
use super::responses::{denied, message, visitor};
use super::site_state::SiteState;
use crate::annotation::pages::field_names::{CENTER, WIDTH, WINDOW};
use crate::annotation::pages::image_view::chosen_window;
use crate::annotation::study::{AssignedTask, Part, Task};

/// What an address says besides the case: the window of a DICOM image.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct CaseQuery {
    center: Option<String>,
    width: Option<String>,
    window: Option<String>,
    /// Number of the suggestion whose texts fill an own evaluation.
    pub(super) from: Option<usize>,
}

impl CaseQuery {
    /// Returns center and width of the window, if somebody chose one.
    pub(super) fn window(&self) -> Option<[f64; 2]> {
        chosen_window(|name| match name {
            CENTER => self.center.as_deref(),
            WIDTH => self.width.as_deref(),
            WINDOW => self.window.as_deref(),
            _ => None,
        })
    }
}

/// A task that a rater asks for.
pub(super) struct RequestedTask<'a> {
    /// Index of the rater.
    pub(super) rater: usize,
    /// Place in the rater's order.
    pub(super) place: usize,
    /// How the rater sees it.
    pub(super) assigned: AssignedTask,
    /// The task.
    pub(super) task: &'a Task,
}

/// Returns the task that a rater asks for, or the answer to everybody else.
#[expect(clippy::result_large_err, reason = "the error is the response, which is sent at once")]
pub(super) fn requested_task<'a>(
    site: &'a SiteState,
    number: &str,
    headers: &HeaderMap,
) -> Result<RequestedTask<'a>, Response> {
    let Some(Visitor::Rater(rater)) = visitor(site, headers) else {
        return Err(denied(site));
    };
    let place = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let task = place.and_then(|place| {
        let (assigned, task) = site.plan.assigned(rater, place)?;
        Some(RequestedTask { rater, place, assigned, task })
    });
    task.ok_or_else(|| {
        message(site, StatusCode::NOT_FOUND, "No such case", "You have no case with this number.")
    })
}

impl RequestedTask<'_> {
    /// Returns the rater and the number of the case, for messages on the terminal.
    pub(super) fn describe(&self, site: &SiteState) -> String {
        describe_task(site, self.rater, self.place)
    }
}

/// Returns the name of a rater and the number of a case.
pub(super) fn describe_task(site: &SiteState, rater: usize, place: usize) -> String {
    let rater = site.plan.config.raters.get(rater).map_or("", |rater| &rater.name);
    format!("{rater}, case {}", place + 1)
}

impl SiteState {
    /// Returns the places of the tasks that a rater may open in a part.
    pub(super) fn places(&self, part: Part, rater: usize) -> Vec<usize> {
        self.read_ratings(|ratings| match part {
            Part::Responses if !self.plan.config.rates_responses() => Vec::new(),
            Part::Responses => (0..ratings.of_rater(part, rater).len()).collect(),
            Part::Evaluations => ratings.visible_evaluations(&self.plan, rater),
        })
    }
}
