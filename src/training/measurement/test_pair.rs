//! Pairs whose better response is known, judged with the original, a blank or a mismatched image.

use std::sync::Arc;

use anyhow::{Context, Result};

use crate::data::cases::{Case, Response};
use crate::data::images::LoadedImage;
use crate::data::images::derived::blank;
use crate::judging::judge::{Judge, PairJob, Unscored};
use acem3_conclusion::Verdict;

/// Pairs per batch.
const BATCH: usize = 16;

/// A pair of a test set.
pub(crate) struct TestPair {
    /// Key of the image; pairs with the same image have the same key.
    pub(crate) cluster: String,
    /// The image.
    pub(crate) image: Arc<LoadedImage>,
    /// The question.
    pub(crate) question: String,
    /// Both responses.
    pub(crate) responses: [String; 2],
}

/// The image that the judge sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageCondition {
    /// The original image.
    Own,
    /// A grey image of the same size.
    Blank,
    /// The image of another pair.
    Exchanged,
}

/// Judges all pairs and returns a verdict, or the reason for none, for each. Calls `progress` with the number of
/// judged pairs after each batch; an error of `progress` ends the run.
pub(crate) fn judge(
    judge: &mut dyn Judge,
    trials: &[TestPair],
    view: ImageCondition,
    progress: &dyn Fn(usize) -> Result<()>,
) -> Result<Vec<Result<Verdict, Unscored>>> {
    let mut verdicts = Vec::with_capacity(trials.len());
    let indices: Vec<usize> = (0..trials.len()).collect();
    for chunk in indices.chunks(BATCH) {
        let jobs: Vec<PairJob> = chunk
            .iter()
            .map(|i| job(trials, *i, view))
            .collect::<Result<_>>()?;
        verdicts.extend(judge.judge(&jobs)?);
        progress(verdicts.len())?;
    }
    Ok(verdicts)
}

fn job(trials: &[TestPair], i: usize, view: ImageCondition) -> Result<PairJob> {
    let trial = &trials[i];
    let image = match view {
        ImageCondition::Own => trial.image.clone(),
        ImageCondition::Blank => blank(&trial.image.decoded)?,
        ImageCondition::Exchanged => {
            let other = next_with_other_image(trials, i)
                .context("all pairs of the test set have the same image")?;
            other.image.clone()
        }
    };
    let response = |i: usize| Response {
        model: ["a", "b"][i].to_owned(),
        text: trial.responses[i].clone(),
    };
    let case = Case {
        id: i.to_string(),
        image: None,
        question: trial.question.clone(),
        responses: vec![response(0), response(1)],
        reference: None,
        labels: None,
        meta: serde_json::Map::new(),
        extra: serde_json::Map::new(),
        line: i as u64 + 1,
    };
    Ok(PairJob {
        case: Arc::new(case),
        pair: [0, 1],
        image: Some(image),
    })
}

/// Returns the next pair with a different image, if there is one.
fn next_with_other_image(trials: &[TestPair], i: usize) -> Option<&TestPair> {
    let own = &trials[i];
    let mut later = (1..trials.len()).map(|step| &trials[(i + step) % trials.len()]);
    later.find(|other| other.cluster != own.cluster)
}

/// Returns true if the pairs have at least two different images.
pub(crate) fn can_exchange(trials: &[TestPair]) -> bool {
    !trials.is_empty() && next_with_other_image(trials, 0).is_some()
}
