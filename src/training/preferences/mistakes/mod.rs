//! Preference pairs from wrong verdicts: the evaluation of a panel that contradicts the labels is
//! rejected, and that of a teacher, which agrees with them, is chosen.

mod corrections;
mod skipped_mistakes;
mod target_labels;
mod verdict_order;

use std::path::PathBuf;
use std::sync::Arc;

use acem3_experts::prompt::Form;
use acem3_vision::DicomView;
use anyhow::{Result, bail};

use self::corrections::{Correction, Corrections};
use self::target_labels::TargetLabels;
use self::verdict_order::VerdictOrder;
use super::prompt_text::prompt_text;
use crate::data::images::EncodedImage;
use crate::judging::run::manifest::Manifest;
use crate::judging::run::record::record_reader::open_records;
use crate::judging::run::record::{Record, RecordSubject};
use crate::judging::verification::SampledImages;
use crate::support::terminal::interrupt::Interrupt;
use crate::training::preferences::evaluation_preferences::check_outside;
use crate::training::preferences::files::copied_images::CopiedImages;
use crate::training::preferences::files::preference_folder::{
    PairPrompt, PreferenceFolder, PreferenceFolderConfig, WrittenCounts,
};
use crate::training::preferences::recorded_evaluations::{
    EvaluatedMember, PresentedEvaluation, RecordedEvaluation,
};

pub use skipped_mistakes::{SkipReason, SkippedMistakes};

/// Name of the origin of rejected evaluations in the file.
const ORIGIN: &str = "wrong-verdict";

/// Files that the pairs come from.
#[derive(Clone, Debug)]
pub struct MistakeFiles {
    /// Records of the panel whose wrong verdicts are rejected, with labels.
    pub records: PathBuf,
    /// Records of a teacher about the same responses, or a file of evaluations.
    pub corrections: PathBuf,
    /// Folder of the images; `None` for that of the run.
    pub images: Option<PathBuf>,
}

/// Numbers of written pairs and of evaluations without one.
#[derive(Clone, Debug, Default)]
pub struct MistakeCounts {
    /// Written pairs.
    pub written: WrittenCounts,
    /// Number of verdicts with labels that were compared.
    pub verdicts: u64,
    /// Evaluations without a pair, by reason.
    pub skipped: SkippedMistakes,
}

/// Writes a preference pair for each evaluation of a wrong verdict that a teacher corrected.
///
/// # Errors
/// If a file cannot be read, the records have another rubric than `config.prompts`, no verdict has
/// labels, or a file cannot be written.
pub fn write_mistake_preferences(
    files: &MistakeFiles,
    config: &PreferenceFolderConfig,
    interrupt: &Interrupt,
) -> Result<MistakeCounts> {
    for input in [&files.records, &files.corrections] {
        check_outside(&config.out, input)?;
    }
    let corrections = Corrections::read(&files.corrections)?;
    let mut records = open_records(&files.records)?;
    let manifest = records.manifest();
    let images = find_images(manifest, files)?;
    for image in images.paths() {
        check_outside(&config.out, &image)?;
    }
    let mut writer = MistakeWriter {
        shows_reference: shows_reference(manifest),
        images,
        corrections,
        folder: PreferenceFolder::create(config)?,
        config,
        copied: CopiedImages::new(&config.out),
        counts: MistakeCounts::default(),
    };
    for record in records.by_ref() {
        interrupt.bail_if_requested("the pairs are not written; run the same command again")?;
        writer.add(&record?)?;
    }
    if let Some(found) = records.state().problems.first() {
        bail!("{}\nhint: complete or repair the run first", found.problem);
    }
    if writer.counts.verdicts == 0 {
        bail!(
            "{}: no verdict has final labels, expected some to find wrong verdicts\n\
             hint: give the cases `\"labels\": {{\"final\": [a, b]}}`, one score for each response",
            files.records.display()
        );
    }
    let MistakeWriter { folder, mut counts, .. } = writer;
    counts.written = folder.finish()?;
    Ok(counts)
}

/// Returns true if the prompts of a run showed the reference.
fn shows_reference(manifest: Option<&Manifest>) -> bool {
    let reference = manifest.and_then(|m| m.provenance.get("reference"));
    reference.is_some_and(|reference| reference == "shown")
}

/// Returns the images of a run, from `--images` or from its cases.
fn find_images(manifest: Option<&Manifest>, files: &MistakeFiles) -> Result<SampledImages> {
    let source = manifest.map(|manifest| manifest.source.cases_path());
    let source = files.images.clone().or(source).unwrap_or_default();
    SampledImages::for_run(&source, DicomView::default(), &files.records)
}

/// Writes the pairs of records.
struct MistakeWriter<'a> {
    shows_reference: bool,
    images: SampledImages,
    corrections: Corrections,
    folder: PreferenceFolder<'a>,
    config: &'a PreferenceFolderConfig,
    copied: CopiedImages,
    counts: MistakeCounts,
}

impl MistakeWriter<'_> {
    fn add(&mut self, record: &Record) -> Result<()> {
        let Some(verdict) = record.verdict() else {
            return Ok(());
        };
        let subject = &record.subject;
        let Some(labels) = TargetLabels::of_subject(subject) else {
            self.counts.skipped.add(SkipReason::Unlabelled);
            return Ok(());
        };
        self.counts.verdicts += 1;
        let shows_reference = self.shows_reference || subject.form == Form::Correctness;
        let prompts = self.config.prompts.builder(subject.form, shows_reference)?;
        for (index, order) in verdict.orders.iter().enumerate() {
            let presentation = VerdictOrder { subject, order, index, prompts: &prompts };
            self.add_presentation(&presentation, &labels)?;
        }
        Ok(())
    }

    /// Adds the pairs of one presentation order.
    fn add_presentation(
        &mut self,
        presentation: &VerdictOrder<'_>,
        labels: &TargetLabels<'_>,
    ) -> Result<()> {
        let VerdictOrder { subject, order, prompts, .. } = presentation;
        let own = match prompts.recorded_evaluations(subject, order)? {
            Ok(own) => own,
            Err(missing) => {
                self.counts.skipped.add(missing.into());
                return Ok(());
            }
        };
        for recorded in &own {
            let RecordedEvaluation { member, evaluation, prompt: styled, format } = recorded;
            let prompt = prompt_text(&styled.pieces);
            let outcome = Comparison { labels, own: &own, member, evaluation }
                .choose(|| self.corrections.find(presentation, member, &prompt))
                .and_then(|chosen| Ok((self.find_image(subject, styled.has_image)?, chosen)));
            let (image, chosen) = match outcome {
                Ok(outcome) => outcome,
                Err(reason) => {
                    self.counts.skipped.add(reason);
                    continue;
                }
            };
            let image = image.map(|image| self.copied.copy_encoded(&image));
            let name = prompts.member_name(member.index);
            let pair = PairPrompt {
                id: presentation.id(name),
                member: Some(name.to_owned()),
                image: image.transpose()?,
                prompt,
                lead: styled.lead.clone(),
                format: format.clone(),
            };
            self.folder.add_pair(&pair, [&chosen.ratings, &evaluation.ratings], ORIGIN)?;
        }
        Ok(())
    }

    /// Returns the image of a record, if the prompt shows it.
    fn find_image(
        &mut self,
        subject: &RecordSubject,
        is_shown: bool,
    ) -> Result<Option<Arc<EncodedImage>>, SkipReason> {
        let Some(image) = subject.image.as_ref().filter(|_| is_shown) else {
            return Ok(None);
        };
        self.images.read(image).map(Some).map_err(|_| SkipReason::NoImage)
    }
}

/// Evaluation of a member, compared with labels and with the one of a teacher.
struct Comparison<'a> {
    labels: &'a TargetLabels<'a>,
    /// Evaluations of all members in the same presentation.
    own: &'a [RecordedEvaluation],
    member: &'a EvaluatedMember,
    evaluation: &'a PresentedEvaluation,
}

impl Comparison<'_> {
    /// Returns the teacher's evaluation if this one is wrong and that one right.
    ///
    /// An aspect without labels is compared by the final ones: its evaluation is wrong if the final
    /// scores of the presentation are, those of the teacher are right, and the teacher gives this
    /// aspect another order.
    fn choose(
        &self,
        find: impl FnOnce() -> Result<Correction, SkipReason>,
    ) -> Result<PresentedEvaluation, SkipReason> {
        let Self { labels, own, member, evaluation } = self;
        let target = member.target();
        let is_right = labels.is_right(target, &evaluation.scores);
        let is_final_right = || labels.is_right(None, &own.last()?.evaluation.scores);
        if is_right.or_else(is_final_right).unwrap_or(true) {
            return Err(SkipReason::Right);
        }
        let Correction { evaluation: chosen, final_scores } = find()?;
        match labels.is_right(target, &chosen.scores) {
            Some(true) => Ok(chosen),
            Some(false) => Err(SkipReason::WrongCorrection),
            None => {
                let is_teacher_right = final_scores.and_then(|s| labels.is_right(None, &s));
                if is_teacher_right == Some(false) {
                    Err(SkipReason::WrongCorrection)
                } else if labels.are_alike(&chosen.scores, &evaluation.scores) {
                    Err(SkipReason::SameOrder)
                } else {
                    Ok(chosen)
                }
            }
        }
    }
}
