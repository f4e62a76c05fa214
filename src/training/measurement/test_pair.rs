//! Pairs of a test set, judged with the original, a blank or a mismatched image.

use std::sync::Arc;

use acem3_conclusion::Verdict;
use anyhow::{Context, Result};

use crate::data::cases::{Case, Response};
use crate::data::images::LoadedImage;
use crate::data::images::derived::blank_image;
use crate::judging::judge::{Judge, JudgeJob, Unscored};

/// Pairs per batch.
const BATCH: usize = 16;

/// A pair of a test set.
pub(crate) struct TestPair {
    /// Key of the image; pairs with the same image have the same key.
    pub(crate) cluster: String,
    /// Decoded image.
    pub(crate) image: Arc<LoadedImage>,
    /// Question about the image.
    pub(crate) question: String,
    /// Two responses to the question.
    pub(crate) responses: [String; 2],
}

/// Image that the judge receives with a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageCondition {
    /// The original image.
    Original,
    /// A grey image of the same size.
    Blank,
    /// The image of another pair.
    Mismatched,
}

/// Judges all pairs. Returns a verdict for each pair, or the reason why it has none. Calls
/// `progress` with the number of judged pairs after each batch. An error of `progress` ends the
/// run.
pub(crate) fn judge_pairs(
    judge: &mut dyn Judge,
    pairs: &[TestPair],
    condition: ImageCondition,
    progress: &dyn Fn(usize) -> Result<()>,
) -> Result<Vec<Result<Verdict, Unscored>>> {
    let mut verdicts = Vec::with_capacity(pairs.len());
    let indices: Vec<usize> = (0..pairs.len()).collect();
    for chunk in indices.chunks(BATCH) {
        let jobs: Vec<JudgeJob> =
            chunk.iter().map(|i| pair_job(pairs, *i, condition)).collect::<Result<_>>()?;
        verdicts.extend(judge.judge(&jobs)?);
        progress(verdicts.len())?;
    }
    Ok(verdicts)
}

fn pair_job(pairs: &[TestPair], i: usize, condition: ImageCondition) -> Result<JudgeJob> {
    let pair = &pairs[i];
    let image = match condition {
        ImageCondition::Original => pair.image.clone(),
        ImageCondition::Blank => blank_image(&pair.image.decoded)?,
        ImageCondition::Mismatched => {
            let other = next_with_other_image(pairs, i)
                .context("all pairs of the test set have the same image")?;
            other.image.clone()
        }
    };
    let response = |index: usize| Response {
        model: ["a", "b"][index].to_owned(),
        text: pair.responses[index].clone(),
    };
    let case = Case {
        id: i.to_string(),
        image: None,
        question: pair.question.clone(),
        responses: vec![response(0), response(1)],
        reference: None,
        labels: None,
        meta: serde_json::Map::new(),
        extra: serde_json::Map::new(),
        line: i as u64 + 1,
    };
    Ok(JudgeJob { case: Arc::new(case), responses: vec![0, 1], image: Some(image) })
}

/// Returns the first pair after `i`, cyclically, that has a different image.
fn next_with_other_image(pairs: &[TestPair], i: usize) -> Option<&TestPair> {
    let mut others = (1..pairs.len()).map(|step| &pairs[(i + step) % pairs.len()]);
    others.find(|other| other.cluster != pairs[i].cluster)
}

/// Returns true if the pairs have at least two different images.
pub(crate) fn has_distinct_images(pairs: &[TestPair]) -> bool {
    !pairs.is_empty() && next_with_other_image(pairs, 0).is_some()
}
