//! Judging again: pairs as they are and changed, batch by batch.

use std::collections::HashMap;
use std::sync::Arc;

use acem3_conclusion::Verdict;
use anyhow::{Context as _, Result, ensure};

use super::plan::{AuditPair, AuditPass, AuditPlan};
use super::trial::VerdictScores;
use crate::analysis::audit::image_perturbation::ImagePerturbation;
use crate::data::cases::{Case, ImageSource, Response, UnscoredReason};
use crate::data::images::{ImageReader, LoadedImage};
use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::judging::judge::{Judge, PairJob, Unscored};
use crate::support::terminal::exit::EngineFailure;

/// A batch is closed early when its images hold so many pixels, whatever its size.
const BATCH_PIXELS: u64 = 64 << 20;

/// What came of a sitting.
pub type PassResult = Result<PassVerdict, Unscored>;

/// A verdict that was given. Those on changed pairs are many, and only compared: their analyses are let go.
#[derive(Clone, Debug)]
pub enum PassVerdict {
    /// On a pair as it is.
    AsItIs(Box<RecordedVerdict>),
    /// On a changed one.
    Changed(VerdictScores),
}

impl PassVerdict {
    /// What an audit compares of it.
    pub fn marks(&self) -> VerdictScores {
        match self {
            Self::AsItIs(judgement) => VerdictScores::of(judgement),
            Self::Changed(marks) => marks.clone(),
        }
    }
}

/// How far it is: sittings that are through, and those of them with a verdict; it may end the work.
pub type ProgressFn<'a> = &'a mut dyn FnMut(usize, usize) -> Result<()>;

/// Judges all sittings of a plan; what came of each, in their order.
///
/// # Errors
///
/// A judge that fails as a whole, and whatever `told` ends the work with.
pub fn judge_all(
    judge: &mut dyn Judge,
    (pairs, plan): (&[AuditPair], &AuditPlan),
    images: &mut ImageReader,
    batch_size: usize,
    told: ProgressFn<'_>,
) -> Result<Vec<PassResult>> {
    let sources: HashMap<&str, &ImageSource> = pairs
        .iter()
        .filter_map(|pair| Some((pair.case.id.as_str(), pair.case.image.as_ref()?)))
        .collect();
    let mut found: Vec<Option<PassResult>> = vec![None; plan.sittings.len()];
    let (mut waiting, mut pixels) = (Vec::new(), 0);
    for (number, sitting) in plan.sittings.iter().enumerate() {
        let pair = pairs
            .get(sitting.pair)
            .context("a sitting without a pair")?;
        match image(pair, &sitting.picture, &sources, images)? {
            Err(message) => {
                let reason = UnscoredReason::Image;
                found[number] = Some(Err(Unscored { reason, message }));
            }
            Ok(image) => {
                pixels += image.as_deref().map_or(0, LoadedImage::pixels);
                waiting.push((number, job(pair, sitting, image)));
            }
        }
        if waiting.len() >= batch_size.max(1) || pixels >= BATCH_PIXELS {
            judge_batch(judge, plan, std::mem::take(&mut waiting), &mut found)?;
            pixels = 0;
            tell(&found, told)?;
        }
    }
    judge_batch(judge, plan, waiting, &mut found)?;
    tell(&found, told)?;
    Ok(found.into_iter().flatten().collect())
}

fn tell(found: &[Option<PassResult>], told: ProgressFn<'_>) -> Result<()> {
    let through = found.iter().flatten();
    let scored = through.clone().filter(|sat| sat.is_ok()).count();
    told(through.count(), scored)
}

fn judge_batch(
    judge: &mut dyn Judge,
    plan: &AuditPlan,
    waiting: Vec<(usize, PairJob)>,
    found: &mut [Option<PassResult>],
) -> Result<()> {
    if waiting.is_empty() {
        return Ok(());
    }
    let (numbers, jobs): (Vec<usize>, Vec<PairJob>) = waiting.into_iter().unzip();
    let given = judge.judge(&jobs).with_context(|| {
        let first = jobs.first().map_or("", |job| &job.case.id);
        EngineFailure(format!(
            "the judge failed at case `{first}` (batch of {})\n\
             hint: no figures were kept; the same command begins anew",
            jobs.len()
        ))
    })?;
    ensure!(
        given.len() == jobs.len(),
        "the judge gave {} results for {} pairs",
        given.len(),
        jobs.len()
    );
    let sat = |number: usize, given: Result<Verdict, Unscored>| -> Result<PassResult> {
        let is_changed = plan
            .sittings
            .get(number)
            .is_some_and(|s| s.change.is_some());
        Ok(match given {
            Ok(verdict) if is_changed => Ok(PassVerdict::Changed(VerdictScores::of(
                &RecordedVerdict::from_verdict(&verdict)?,
            ))),
            Ok(verdict) => Ok(PassVerdict::AsItIs(Box::new(
                RecordedVerdict::from_verdict(&verdict)?,
            ))),
            Err(unscored) => Err(unscored),
        })
    };
    for (number, given) in numbers.into_iter().zip(given) {
        if let Some(place) = found.get_mut(number) {
            *place = Some(sat(number, given)?);
        }
    }
    Ok(())
}

/// The image that a sitting shows, or what is wrong with it.
fn image(
    pair: &AuditPair,
    picture: &ImagePerturbation,
    sources: &HashMap<&str, &ImageSource>,
    images: &mut ImageReader,
) -> Result<Result<Option<Arc<LoadedImage>>, String>> {
    let source = match picture {
        ImagePerturbation::Of(case) => sources.get(case.as_str()).copied(),
        _ => pair.case.image.as_ref(),
    };
    let Some(source) = source else {
        return Ok(Ok(None));
    };
    Ok(match images.load(source) {
        Ok(image) => Ok(Some(picture.change(&image)?)),
        Err(message) => Err(message),
    })
}

/// The pair of a sitting, as a case of two responses that keeps the id, the question and the image.
fn job(pair: &AuditPair, sitting: &AuditPass, image: Option<Arc<LoadedImage>>) -> PairJob {
    let [first, second] = pair.models();
    let [a, b] = sitting.responses.clone();
    let response = |model, text| Response { model, text };
    let case = Case {
        responses: vec![response(first, a), response(second, b)],
        labels: None,
        ..Case::clone(&pair.case)
    };
    PairJob {
        case: Arc::new(case),
        pair: [0, 1],
        image,
    }
}
