//! Converts the records of a teacher to evaluations for training, after an automatic check.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use acem3_experts::prompt::{Form, Rubric};
use acem3_vision::DicomView;
use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use super::collected_evaluation::{CollectedEvaluation, LineContent, RejectedEvaluation};
use super::saved_images::SavedImages;
use super::verdict_check::{CheckRules, RejectReason, Rejection, shown_models};
use crate::judging::knowledge::AskedEvidence;
use crate::judging::run::record::record_reader::{RecordReader, open_records};
use crate::judging::run::record::{Record, RecordSubject};
use crate::judging::verification::SampledImages;
use crate::support::digest::Digest;
use crate::support::files::atomic_file::write_chunks_atomic;
use crate::support::files::edited_file::{EditedFile, hash_file};
use crate::support::files::folder::{FolderLock, create_folder};
use crate::support::terminal::interrupt::Interrupt;
use crate::training::preferences::PromptStyle;
use crate::training::preferences::prompt_style::StyledPrompts;

/// File of the accepted evaluations.
pub const EVALUATIONS: &str = "evaluations.jsonl";
/// File of the rejected ones.
pub const REJECTED: &str = "rejected.jsonl";
/// File of the counts and settings.
pub const SUMMARY: &str = "summary.json";

/// Records to convert, and how.
pub struct ConversionRequest {
    /// Folder of the teacher's run.
    pub run: PathBuf,
    /// Folder of the evaluations.
    pub out: PathBuf,
    /// Prompts of the trained members.
    pub prompts: PromptStyle,
    /// The form of judging.
    pub form: Form,
    /// True if these prompts show the reference answer.
    pub shows_reference: bool,
    /// The automatic check.
    pub rules: CheckRules,
    /// Display settings of DICOM images, as the teacher saw them.
    pub dicom_view: DicomView,
    /// Writes the teacher's questions into the evaluations; `None` to leave them out.
    pub evidence: Option<AskedEvidence>,
}

/// Counts of a conversion. An evaluation is what one member writes about one presentation order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ConversionSummary {
    /// The teacher.
    pub teacher: String,
    /// Hash of everything that can change the teacher's verdicts.
    pub teacher_sha256: String,
    /// The form of judging.
    pub form: &'static str,
    /// Number of records read, without those of input problems that affect no verdict.
    pub records: u64,
    /// Number of presentation orders whose evaluations were accepted.
    pub accepted_orders: u64,
    /// Number of these that nothing could be compared with: no label and no reference.
    pub unchecked_orders: u64,
    /// Number of evaluations for which the teacher looked something up.
    pub looked_up: u64,
    /// Number of evaluations by member.
    pub evaluations: BTreeMap<&'static str, u64>,
    /// Number of rejected records and presentation orders by reason.
    pub rejected: BTreeMap<&'static str, u64>,
    /// Number of images.
    pub images: usize,
    /// Hash of the file of evaluations.
    pub evaluations_sha256: Option<Digest>,
    /// Where edited evaluations of an earlier conversion are now.
    #[serde(skip)]
    pub kept: Option<EditedFile>,
}

/// What the summary of an earlier conversion says about its file. Other fields are ignored.
#[derive(Default, Deserialize)]
struct EarlierSummary {
    evaluations_sha256: Option<Digest>,
}

impl ConversionSummary {
    /// Returns the number of all evaluations.
    pub fn total(&self) -> u64 {
        self.evaluations.values().sum()
    }
}

/// Converts the records of a run, and writes evaluations, rejected ones, images and counts.
///
/// # Errors
///
/// A record is damaged, belongs to another form or rubric, or an image is missing; a file cannot be
/// written; or the user interrupts.
pub fn convert_records(
    request: &ConversionRequest,
    interrupt: &Interrupt,
) -> Result<ConversionSummary> {
    let mut records = open_records(&request.run)?;
    let manifest = records.manifest().cloned().with_context(|| {
        format!(
            "{}: no run.json\nhint: expected the folder that `acem3 judge --out` wrote",
            request.run.display()
        )
    })?;
    let (cases, view) = (manifest.source.cases_path(), request.dicom_view.clone());
    let images = SampledImages::for_run(&cases, view, &request.run)?;
    let prompts = request.prompts.builder(request.form, request.shows_reference)?;
    create_folder(&request.out)?;
    let _lock = FolderLock::acquire(&request.out)?;
    let conversion = Conversion {
        request,
        prompts,
        images,
        saved: SavedImages::new(&request.out),
        rejected: Vec::new(),
        summary: ConversionSummary {
            teacher: manifest.judge.clone(),
            teacher_sha256: manifest.judge_sha256.to_string(),
            form: request.form.name(),
            ..ConversionSummary::default()
        },
    };
    // People edit evaluations, for example to rate them.
    let written = earlier_hash(&request.out);
    let (summary, kept) = EditedFile::replace(&request.out.join(EVALUATIONS), written, || {
        conversion.write(&mut records, interrupt)
    })?;
    Ok(ConversionSummary { kept, ..summary })
}

/// Returns the hash of the evaluations that an earlier conversion wrote.
fn earlier_hash(out: &Path) -> Option<Digest> {
    let summary = fs::read_to_string(out.join(SUMMARY)).ok()?;
    serde_json::from_str::<EarlierSummary>(&summary).ok()?.evaluations_sha256
}

/// Returns an error if records are damaged or missing.
fn check_complete(records: &RecordReader<'_, Record>, run: &Path) -> Result<()> {
    if let Some(found) = records.state().problems.first() {
        bail!(
            "{}: {}\nhint: finish the run with the same `acem3 judge` command",
            run.display(),
            found.problem
        );
    }
    Ok(())
}

/// A conversion in progress.
struct Conversion<'a> {
    request: &'a ConversionRequest,
    prompts: StyledPrompts,
    images: SampledImages,
    saved: SavedImages,
    rejected: Vec<String>,
    summary: ConversionSummary,
}

impl Conversion<'_> {
    /// Writes the files of the evaluations, of the rejected ones and of the counts.
    fn write(
        mut self,
        records: &mut RecordReader<'static, Record>,
        interrupt: &Interrupt,
    ) -> Result<ConversionSummary> {
        let out = &self.request.out;
        write_chunks_atomic(&out.join(EVALUATIONS), self.lines(records, interrupt))?;
        let Self { rejected, mut summary, saved, .. } = self;
        summary.images = saved.count();
        summary.evaluations_sha256 = hash_file(&out.join(EVALUATIONS))?;
        write_chunks_atomic(&out.join(REJECTED), rejected.into_iter().map(Ok))?;
        let json = serde_json::to_string_pretty(&summary)? + "\n";
        write_chunks_atomic(&out.join(SUMMARY), [Ok(json)])?;
        Ok(summary)
    }

    /// Returns the lines of the accepted evaluations, record by record, and at the end the error of
    /// an incomplete run.
    fn lines<'a>(
        &'a mut self,
        records: &'a mut RecordReader<'static, Record>,
        interrupt: &'a Interrupt,
    ) -> impl Iterator<Item = Result<String>> + 'a {
        let mut number = 0;
        std::iter::from_fn(move || {
            let Some(record) = records.next() else {
                return check_complete(records, &self.request.run).err().map(Err);
            };
            number += 1;
            Some(self.convert_next(number, record, interrupt))
        })
    }

    /// Converts the record of this number, unless the user interrupts.
    fn convert_next(
        &mut self,
        number: u64,
        record: Result<Record>,
        interrupt: &Interrupt,
    ) -> Result<String> {
        interrupt.bail_if_requested("run the same command again")?;
        let location = || format!("{} record {number}", self.request.run.display());
        self.convert(number, &record?).with_context(location)
    }

    /// Converts a record to the lines of its accepted evaluations.
    fn convert(&mut self, number: u64, record: &Record) -> Result<String> {
        let subject = &record.subject;
        let Some(verdict) = self.request.rules.verdict(&record.outcome) else {
            return Ok(String::new());
        };
        self.summary.records += 1;
        let mut text = String::new();
        match verdict {
            Err(rejection) => self.reject(number, subject, Vec::new(), rejection)?,
            Ok(verdict) => {
                self.check_form(subject)?;
                for order in &verdict.orders {
                    let models = shown_models(subject, order);
                    if let Err(rejection) = self.request.rules.check(subject, order) {
                        self.reject(number, subject, models, rejection)?;
                        continue;
                    }
                    let evaluations = match self.prompts.recorded_evaluations(subject, order)? {
                        Ok(evaluations) => evaluations,
                        Err(missing) => {
                            let reason = RejectReason::Incomplete;
                            let rejection =
                                Rejection { reason, message: missing.text().to_owned() };
                            self.reject(number, subject, models, rejection)?;
                            continue;
                        }
                    };
                    let shows_image = evaluations.iter().any(|e| e.prompt.has_image);
                    let image = if shows_image { self.save_image(subject)? } else { None };
                    self.summary.accepted_orders += 1;
                    self.summary.unchecked_orders +=
                        u64::from(!self.request.rules.can_compare(subject));
                    for recorded in evaluations {
                        let aspect = self.prompts.member_name(recorded.member.index);
                        *self.summary.evaluations.entry(aspect).or_default() += 1;
                        let image = image.as_deref().filter(|_| recorded.prompt.has_image);
                        let completion = recorded.completion(self.request.evidence.as_ref())?;
                        let content = LineContent { aspect, completion, image };
                        let line = CollectedEvaluation::new(subject, order, recorded, content);
                        self.summary.looked_up += u64::from(!line.lookups.is_empty());
                        text += &serde_json::to_string(&line)?;
                        text.push('\n');
                    }
                }
            }
        }
        Ok(text)
    }

    /// Checks that the prompts are for the form and the rubric of a record.
    fn check_form(&self, subject: &RecordSubject) -> Result<()> {
        let form = self.request.form;
        if subject.form != form {
            bail!(
                "judged in the form {}, expected {}\nhint: pass --form {}",
                subject.form.name(),
                form.name(),
                subject.form.name()
            );
        }
        Ok(())
    }

    fn save_image(&mut self, subject: &RecordSubject) -> Result<Option<String>> {
        let Some(info) = &subject.image else {
            return Ok(None);
        };
        let image = self.images.read(info).map_err(anyhow::Error::msg).context(
            "the image of the record\n\
             hint: put the images where they were when the teacher judged them",
        )?;
        self.saved.save(&image).map(Some)
    }

    fn reject(
        &mut self,
        record: u64,
        subject: &RecordSubject,
        models: Vec<String>,
        rejection: Rejection,
    ) -> Result<()> {
        *self.summary.rejected.entry(rejection.reason.name()).or_default() += 1;
        let models = if models.is_empty() { subject.judged_models().to_vec() } else { models };
        let line = RejectedEvaluation { case: subject.case.clone(), models, rejection, record };
        self.rejected.push(serde_json::to_string(&line)? + "\n");
        Ok(())
    }
}

/// Checks that a rubric has the aspects that a teacher scored.
///
/// # Errors
///
/// The first record with a verdict has other aspects.
pub fn check_rubric(run: &Path, rubric: &Rubric) -> Result<()> {
    for record in open_records(run)? {
        let record = record?;
        let Some(verdict) = record.verdict().filter(|_| record.subject.form != Form::Correctness)
        else {
            continue;
        };
        let found: BTreeSet<&str> = verdict.aspects.keys().map(|aspect| aspect.key()).collect();
        let expected: BTreeSet<&str> =
            rubric.aspects.iter().map(|aspect| aspect.key.key()).collect();
        if found != expected {
            let join = |keys: BTreeSet<&str>| keys.into_iter().collect::<Vec<_>>().join(", ");
            bail!(
                "{}: the teacher scored {}, and the rubric {} has {}\n\
                 hint: pass the --rubric of the run",
                run.display(),
                join(found),
                rubric.key,
                join(expected)
            );
        }
        return Ok(());
    }
    Ok(())
}
