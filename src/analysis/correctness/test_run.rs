//! Responses and runs for tests.

use std::path::PathBuf;

use super::graded_run::{GradedResponse, GradedRun};
use crate::judging::run::run_state::RunState;

/// Creates a response; two cases share an image.
pub(super) fn response(case: usize, model: &str, probability: Option<f64>) -> GradedResponse {
    GradedResponse {
        case: case.to_string(),
        model: model.to_owned(),
        cluster: format!("image {}", case / 2),
        has_image: true,
        is_closed: Some(case.is_multiple_of(2)),
        probability,
        is_comparable: probability.is_some(),
        is_exact: case.is_multiple_of(4),
        recall: 0.25,
        meta: serde_json::Map::new(),
        key: None,
    }
}

/// Creates a run.
pub(super) fn run(responses: Vec<GradedResponse>) -> GradedRun {
    GradedRun {
        path: PathBuf::from("records.jsonl"),
        judge: "0".to_owned(),
        name: "judge".to_owned(),
        responses,
        labels: Vec::new(),
        run: RunState::default(),
    }
}
