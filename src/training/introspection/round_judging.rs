//! A panel judges cases; those that it judged wrong are read once more.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use acem3_vision::Limits;
use anyhow::Result;

use super::review::{PairId, Review, nothing_known};
use crate::checkpoints::hub::Downloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::data::cases;
use crate::data::cases::{Case, CaseSource, SourceOptions, SourceSpec};
use crate::data::images::ImageReader;
use crate::judging::judge::{Judge as _, PairJob};
use crate::judging::panel::PanelJudge;
use crate::judging::run::journal::Journal;
use crate::judging::run::manifest::{Manifest, SourceInfo};
use crate::judging::run::pairs::select_pairs;
use crate::judging::run::{Run, RunConfig};
use crate::support::device::Placement;
use crate::support::files::folder::create_folder;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::Progress;
use crate::support::terminal::verbosity::{ProgressMode, Verbosity};
use crate::training::introspection::adviser::MisjudgedPair;

/// Finds out whether something is known of the cases: before hours of training, not behind them.
pub(super) fn check(path: &Path, options: &SourceOptions) -> Result<()> {
    let known = |case: Case| case.labels.is_some_and(|labels| labels.last.is_some());
    if cases::open(path, options)?.flatten().any(known) {
        return Ok(());
    }
    Err(nothing_known(path))
}

/// A run of a round's panel.
pub(super) struct RoundJudging<'a> {
    pub(super) panel: &'a Path,
    /// How cases are read.
    pub(super) cases: &'a SourceSpec,
    /// Which cases: those of `cases`, or others.
    pub(super) path: &'a Path,
    pub(super) out: &'a Path,
    pub(super) batch_size: usize,
    pub(super) place: &'a Placement,
    pub(super) verbosity: Verbosity,
    pub(super) interrupt: &'a Interrupt,
}

impl RoundJudging<'_> {
    /// Judges all cases, or those that an interrupted run left, and holds the verdicts to what is known. `None` when the
    /// person asked to stop.
    pub(super) fn hold(&self) -> Result<Option<Review>> {
        let begun = Instant::now();
        let own = self.path == self.cases.path;
        let options = if own {
            self.cases.options.clone()
        } else {
            SourceOptions::default()
        };
        let mut source = cases::open(self.path, &options)?;
        create_folder(self.out)?;
        let files = PanelFiles::Folder(self.panel.to_owned());
        let mut judge = PanelJudge::open(&files, self.place, Downloads::default())?;
        let mut journal = Journal::open(self.out, &judge.provenance())?;
        let mut manifest = Manifest::start(SourceInfo::new(self.path, source.kind), &judge);
        manifest.write(self.out)?;
        let mut progress = Progress::new(ProgressMode::Auto, self.verbosity, source.total);
        let plan = RunConfig {
            batch_size: self.batch_size,
            baseline: None,
            limit: None,
            root: cases::root(self.path),
        };
        let images = ImageReader::new(plan.root.clone(), Limits::default());
        let images = images.viewed(self.cases.view.clone());
        let mut run = Run::new(&mut judge, &mut journal, images, &mut progress, plan);
        let outcome = run.run(&mut source, self.interrupt);
        let tally = run.tally().clone();
        progress.end();
        manifest.finish(&outcome, &tally, begun.elapsed().as_secs_f64());
        manifest.write(self.out)?;
        if !outcome? {
            return Ok(None);
        }
        Review::of(self.out).map(Some)
    }
}

/// The pairs that were judged wrong, with their images.
pub(super) struct MisjudgedPairs<'a> {
    source: CaseSource,
    images: ImageReader,
    wrong: &'a BTreeMap<PairId, [f64; 2]>,
    waiting: Vec<MisjudgedPair>,
    lost: Vec<(PairId, String)>,
}

impl<'a> MisjudgedPairs<'a> {
    /// Opens the cases once more.
    pub(super) fn open(cases: &SourceSpec, wrong: &'a BTreeMap<PairId, [f64; 2]>) -> Result<Self> {
        let root = cases::root(&cases.path);
        let images = ImageReader::new(root, Limits::default());
        Ok(Self {
            source: cases::open(&cases.path, &cases.options)?,
            images: images.viewed(cases.view.clone()),
            wrong,
            waiting: Vec::new(),
            lost: Vec::new(),
        })
    }

    /// The next ones, so many at most; none at the end.
    pub(super) fn take(&mut self, most: usize) -> Vec<MisjudgedPair> {
        while self.waiting.len() < most {
            // What cannot be read has no verdict either.
            let Some(entry) = self.source.next() else {
                break;
            };
            let Ok(case) = entry else { continue };
            let case = Arc::new(case);
            for pair in select_pairs(&case, None).unwrap_or_default() {
                let mut doubt = MisjudgedPair {
                    job: PairJob {
                        case: Arc::clone(&case),
                        pair,
                        image: None,
                    },
                    known: [0.0; 2],
                };
                let name = doubt.key();
                let Some(known) = self.wrong.get(&name) else {
                    continue;
                };
                doubt.known = *known;
                match case.image.as_ref().map(|s| self.images.load(s)).transpose() {
                    Ok(image) => {
                        doubt.job.image = image;
                        self.waiting.push(doubt);
                    }
                    Err(reason) => self.lost.push((name, reason)),
                }
            }
        }
        let n = most.min(self.waiting.len());
        self.waiting.drain(..n).collect()
    }

    /// Those whose image cannot be read any more.
    pub(super) fn lost(self) -> Vec<(PairId, String)> {
        self.lost
    }
}
