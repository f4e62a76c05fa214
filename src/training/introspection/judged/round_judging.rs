//! Judges the cases of a round and reads the misjudged pairs with their images.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use acem3_vision::ImageLimits;
use anyhow::{Result, bail};

use super::misjudged_pair::MisjudgedPair;
use super::review::{PairId, Review, no_labels_error};
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::data::cases::{self, Case, CaseSource, SourceOptions, SourceSpec};
use crate::data::images::ImageReader;
use crate::data::images::outside_images::OutsideImages;
use crate::judging::judge::{Judge as _, JudgeJob};
use crate::judging::knowledge::JudgeKnowledge;
use crate::judging::panel::{JudgeOptions, Panel, PanelJudge, PanelOptions};
use crate::judging::run::journal::Journal;
use crate::judging::run::manifest::{Manifest, RunEnd};
use crate::judging::run::pairs::select_pairs;
use crate::judging::run::source_info::SourceInfo;
use crate::judging::run::{Run, RunConfig};
use crate::support::device::Placement;
use crate::support::files::folder::create_folder;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::Progress;
use crate::support::terminal::verbosity::{ProgressMode, Verbosity};

/// Checks that at least one case has final labels. Runs before the training, which may take hours.
pub(crate) fn check_labels(path: &Path, options: &SourceOptions) -> Result<()> {
    let has_labels = |case: Case| case.labels.is_some_and(|labels| labels.final_scores.is_some());
    if cases::open(path, options)?.flatten().any(has_labels) {
        return Ok(());
    }
    Err(no_labels_error(path))
}

/// Checks that held-out cases have labels, and are not the training cases.
pub(crate) fn check_held_out(path: &Path, training: &Path) -> Result<()> {
    check_labels(path, &SourceOptions::default())?;
    let [held_out, training] = [path, training].map(|path| std::fs::canonicalize(path).ok());
    if held_out.is_some() && held_out == training {
        bail!(
            "--held-out {}: these are the training cases\n\
             hint: pass other labelled cases, or omit --held-out",
            path.display()
        );
    }
    Ok(())
}

/// A judge run with the panel of a round.
pub(crate) struct RoundJudging<'a> {
    /// Folder of the panel.
    pub(crate) panel: &'a Path,
    /// Source options and DICOM view of the training cases.
    pub(crate) cases: &'a SourceSpec,
    /// Cases to judge: the training cases or the held-out cases.
    pub(crate) path: &'a Path,
    /// Output folder.
    pub(crate) out: &'a Path,
    /// Pairs per batch.
    pub(crate) batch_size: usize,
    /// Device and settings of judging.
    pub(crate) placement: &'a Placement,
    /// Where the panel looks up what it asks.
    pub(crate) knowledge: Option<JudgeKnowledge>,
    /// Amount of progress output.
    pub(crate) verbosity: Verbosity,
    /// Interruption by the user.
    pub(crate) interrupt: &'a Interrupt,
}

impl RoundJudging<'_> {
    /// Judges all cases, or the rest of an interrupted run, and compares the verdicts with the
    /// labels. Returns `None` if the user interrupts it.
    pub(crate) fn run(&self) -> Result<Option<Review>> {
        let start = Instant::now();
        let is_training_source = self.path == self.cases.path;
        let options =
            if is_training_source { self.cases.options.clone() } else { SourceOptions::default() };
        let mut source = cases::open(self.path, &options)?;
        create_folder(self.out)?;
        let files = PanelFiles::Folder(self.panel.to_owned());
        let options = PanelOptions { knowledge: self.knowledge.clone(), ..PanelOptions::default() };
        let panel = Panel::load(&files, options, self.placement, HubDownloads::default())?;
        let mut judge =
            PanelJudge::on_devices(vec![panel], JudgeOptions::most_probable(), self.batch_size)?;
        let mut journal = Journal::open(self.out, &judge.provenance())?;
        let mut manifest =
            Manifest::start(SourceInfo::new(self.path, source.kind), &judge, source.total);
        manifest.write(self.out)?;
        let mut progress = Progress::new(ProgressMode::Auto, self.verbosity, source.total);
        journal.describe_repair().iter().for_each(|note| progress.note(note));
        let config = RunConfig {
            fills_gaps: false,
            batch_size: self.batch_size,
            baseline: None,
            limit: None,
            root: cases::base_folder(self.path),
        };
        let images = ImageReader::new(config.root.clone(), ImageLimits::default());
        let images = images.with_dicom_view(self.cases.dicom_view.clone());
        let mut run = Run::new(&mut judge, &mut journal, images, &mut progress, config);
        let outcome = run.run(&mut source, self.interrupt);
        let tally = run.tally().clone();
        progress.finish();
        let end = RunEnd {
            tally: &tally,
            records_digest: journal.records_digest().ok(),
            seconds: start.elapsed().as_secs_f64(),
        };
        manifest.finish(&outcome, &end);
        manifest.write(self.out)?;
        if !outcome? {
            return Ok(None);
        }
        Review::from_records(self.out).map(Some)
    }
}

/// Reader of the misjudged pairs, with their images.
pub(crate) struct MisjudgedPairs<'a> {
    source: CaseSource,
    images: ImageReader,
    /// Misjudged pairs with their labels.
    misjudged: &'a BTreeMap<PairId, [f64; 2]>,
    /// Pairs that are read but not yet returned.
    pending: Vec<MisjudgedPair>,
    /// Pairs whose image could not be read, with the reason.
    unreadable: Vec<(PairId, String)>,
}

impl<'a> MisjudgedPairs<'a> {
    /// Opens the cases. `outside`: treatment of images outside of their folder.
    pub(crate) fn open(
        cases: &SourceSpec,
        misjudged: &'a BTreeMap<PairId, [f64; 2]>,
        outside: &OutsideImages,
    ) -> Result<Self> {
        let root = cases::base_folder(&cases.path);
        let images = ImageReader::new(root, ImageLimits::default());
        let images = images.with_outside_images(outside.clone());
        Ok(Self {
            source: cases::open(&cases.path, &cases.options)?,
            images: images.with_dicom_view(cases.dicom_view.clone()),
            misjudged,
            pending: Vec::new(),
            unreadable: Vec::new(),
        })
    }

    /// Returns up to `max` pairs; an empty batch at the end.
    pub(crate) fn next_batch(&mut self, max: usize) -> Vec<MisjudgedPair> {
        while self.pending.len() < max {
            let Some(entry) = self.source.next() else {
                break;
            };
            // An unreadable case has no verdict, so it was not misjudged.
            let Ok(case) = entry else { continue };
            let case = Arc::new(case);
            for pair in select_pairs(&case, None).unwrap_or_default() {
                let mut misjudged = MisjudgedPair {
                    job: JudgeJob { case: Arc::clone(&case), responses: pair.into(), image: None },
                    labels: [0.0; 2],
                };
                let id = misjudged.id();
                let Some(labels) = self.misjudged.get(&id) else {
                    continue;
                };
                misjudged.labels = *labels;
                match case.image.as_ref().map(|s| self.images.load(s)).transpose() {
                    Ok(image) => {
                        misjudged.job.image = image;
                        self.pending.push(misjudged);
                    }
                    Err(reason) => self.unreadable.push((id, reason)),
                }
            }
        }
        let n = max.min(self.pending.len());
        self.pending.drain(..n).collect()
    }

    /// Returns the pairs whose image could not be read, with the reason.
    pub(crate) fn unreadable_images(self) -> Vec<(PairId, String)> {
        self.unreadable
    }
}
