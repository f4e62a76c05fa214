//! Runs the passes of an audit, in batches.

use std::collections::HashMap;
use std::sync::Arc;

use acem3_conclusion::Verdict;
use acem3_experts::prompt::Form;
use anyhow::{Context as _, Result, ensure};

use super::audit_pair::AuditPair;
use super::plan::{AuditPass, AuditPlan};
use crate::analysis::audit::perturbations::ImagePerturbation;
use crate::analysis::audit::result::VerdictScores;
use crate::data::cases::{Case, ImageSource, Response, UnscoredReason};
use crate::data::images::{ImageReader, LoadedImage};
use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::judging::judge::{Judge, JudgeJob, Unscored};
use crate::judging::run::pairs::NO_REFERENCE;
use crate::support::terminal::exit::RunFailure;

/// Maximum number of image pixels in a batch; a batch that reaches it is judged early.
const BATCH_PIXELS: u64 = 64 << 20;

/// Result of a pass.
pub type PassResult = Result<PassVerdict, Unscored>;

/// The verdict of a pass. For perturbed pairs only the scores are kept, because there are many of
/// them.
#[derive(Clone, Debug)]
pub enum PassVerdict {
    /// Verdict on the original pair.
    Original(Box<RecordedVerdict>),
    /// Scores of the verdict on a perturbed pair.
    Perturbed(VerdictScores),
}

impl PassVerdict {
    /// Returns the scores that an audit compares.
    pub fn scores(&self) -> VerdictScores {
        match self {
            Self::Original(verdict) => VerdictScores::from_verdict(verdict),
            Self::Perturbed(scores) => scores.clone(),
        }
    }
}

/// Receives the number of finished passes and of those with a verdict. An error stops the audit.
pub type ProgressFn<'a> = &'a mut dyn FnMut(usize, usize) -> Result<()>;

/// Passes to judge, and the batch size.
#[derive(Clone, Copy, Debug)]
pub struct PassSettings<'a> {
    /// The pairs of the plan.
    pub pairs: &'a [AuditPair],
    /// The plan.
    pub plan: &'a AuditPlan,
    /// Pairs per batch, at most.
    pub batch_size: usize,
}

/// A pass that waits for its batch.
struct WaitingPass {
    /// Index in the plan.
    index: usize,
    job: JudgeJob,
}

/// Judges all passes of a plan; returns their results in the same order.
///
/// # Errors
///
/// If the judge fails, or `progress` returns an error.
pub fn run_passes(
    judge: &mut dyn Judge,
    settings: PassSettings<'_>,
    images: &mut ImageReader,
    progress: ProgressFn<'_>,
) -> Result<Vec<PassResult>> {
    let PassSettings { pairs, plan, .. } = settings;
    let sources: HashMap<&str, &ImageSource> = pairs
        .iter()
        .filter_map(|pair| Some((pair.case.id.as_str(), pair.case.image.as_ref()?)))
        .collect();
    let mut results: Vec<Option<PassResult>> = vec![None; plan.passes.len()];
    let (mut waiting, mut pixels) = (Vec::new(), 0);
    for (index, pass) in plan.passes.iter().enumerate() {
        let pair = pairs.get(pass.pair).context("a pass without a pair")?;
        if judge.shows_reference() && pair.reference().is_none() {
            let (reason, message) = (UnscoredReason::Parse, NO_REFERENCE.to_owned());
            results[index] = Some(Err(Unscored::new(reason, message)));
            continue;
        }
        match load_image(pair, &pass.image, &sources, images)? {
            Err(message) => {
                let reason = UnscoredReason::Image;
                results[index] = Some(Err(Unscored::new(reason, message)));
            }
            Ok(image) => {
                pixels += image.as_deref().map_or(0, LoadedImage::pixels);
                waiting.push(WaitingPass { index, job: pair_job(pair, pass, image) });
            }
        }
        if waiting.len() >= settings.batch_size.max(1) || pixels >= BATCH_PIXELS {
            judge_batch(judge, plan, std::mem::take(&mut waiting), &mut results)?;
            pixels = 0;
            report_progress(&results, progress)?;
        }
    }
    judge_batch(judge, plan, waiting, &mut results)?;
    report_progress(&results, progress)?;
    Ok(results.into_iter().flatten().collect())
}

fn report_progress(results: &[Option<PassResult>], progress: ProgressFn<'_>) -> Result<()> {
    let finished = results.iter().flatten();
    let scored = finished.clone().filter(|result| result.is_ok()).count();
    progress(finished.count(), scored)
}

fn judge_batch(
    judge: &mut dyn Judge,
    plan: &AuditPlan,
    waiting: Vec<WaitingPass>,
    results: &mut [Option<PassResult>],
) -> Result<()> {
    if waiting.is_empty() {
        return Ok(());
    }
    let (indices, jobs): (Vec<usize>, Vec<JudgeJob>) =
        waiting.into_iter().map(|w| (w.index, w.job)).unzip();
    let verdicts = judge.judge(&jobs).with_context(|| {
        let first = jobs.first().map_or("", |job| &job.case.id);
        RunFailure(format!(
            "the judge failed at case `{first}` (batch of {})\n\
             hint: no results were saved; run the same command again",
            jobs.len()
        ))
    })?;
    ensure!(
        verdicts.len() == jobs.len(),
        "the judge returned {} results, expected {} (one per pair)",
        verdicts.len(),
        jobs.len()
    );
    for (index, verdict) in indices.into_iter().zip(verdicts) {
        let pass = plan.passes.get(index);
        let is_perturbed = pass.is_some_and(|pass| pass.perturbation.is_some());
        if let Some(result) = results.get_mut(index) {
            *result = Some(pass_result(verdict, is_perturbed)?);
        }
    }
    Ok(())
}

fn pass_result(verdict: Result<Verdict, Unscored>, is_perturbed: bool) -> Result<PassResult> {
    let verdict = match verdict {
        Ok(verdict) => RecordedVerdict::from_verdict(&verdict, Form::Pair)?,
        Err(unscored) => return Ok(Err(unscored)),
    };
    Ok(Ok(if is_perturbed {
        PassVerdict::Perturbed(VerdictScores::from_verdict(&verdict))
    } else {
        PassVerdict::Original(Box::new(verdict))
    }))
}

/// Loads the image of a pass. The inner error is the reason why it could not be loaded.
fn load_image(
    pair: &AuditPair,
    perturbation: &ImagePerturbation,
    sources: &HashMap<&str, &ImageSource>,
    images: &mut ImageReader,
) -> Result<Result<Option<Arc<LoadedImage>>, String>> {
    let source = match perturbation {
        ImagePerturbation::OtherCase(case) => sources.get(case.as_str()).copied(),
        _ => pair.case.image.as_ref(),
    };
    let Some(source) = source else {
        return Ok(Ok(None));
    };
    Ok(match images.load(source) {
        Ok(image) => Ok(Some(perturbation.apply(&image)?)),
        Err(message) => Err(message),
    })
}

/// Converts a pass to a case of two responses, with the id, question and metadata of its case.
fn pair_job(pair: &AuditPair, pass: &AuditPass, image: Option<Arc<LoadedImage>>) -> JudgeJob {
    let [first, second] = pair.models();
    let [a, b] = pass.responses.clone();
    let response = |model, text| Response { model, text };
    let case = Case {
        responses: vec![response(first, a), response(second, b)],
        reference: pass.reference.apply(pair.case.reference.as_deref()),
        labels: None,
        ..Case::clone(&pair.case)
    };
    JudgeJob { case: Arc::new(case), responses: vec![0, 1], image }
}
