//! `acem3 judge`: judges the cases of a source and writes verdicts.

mod baseline;
mod dry_run;
pub(super) mod exit;
mod shard;
mod warnings;

use std::fs;
use std::path::Path;
use std::time::Instant;

use acem3_vision::ImageLimits;
use anyhow::{Context as _, anyhow, bail};

use self::baseline::check_baseline;
use self::dry_run::dry_run;
use self::exit::{check_not_empty, check_unscored, exit_status, print_summary};
use self::shard::{SourceShard, check_same_shard, checked_counts, source_hasher};
use self::warnings::{note_cost, warn_after_run, warn_before_run};
use crate::cli::args::JudgeArgs;
use crate::cli::commands::junit::{check_junit, with_junit, write_junit};
use crate::cli::commands::load_judge::load_judge;
use crate::cli::commands::panel_warning::panel_warning;
use crate::data::cases;
use crate::data::cases::CaseSource;
use crate::data::images::ImageReader;
use crate::data::images::outside_images::OutsideImages;
use crate::judging::judge::Judge;
use crate::judging::judge::server_report::ServerReport;
use crate::judging::run::journal::damaged::DAMAGED_FILE;
use crate::judging::run::journal::superseded::SUPERSEDED_FILE;
use crate::judging::run::journal::{Journal, RECORDS};
use crate::judging::run::manifest::{MANIFEST, Manifest, RunEnd, RunStatus};
use crate::judging::run::output::{contains_records, remove_empty_output};
use crate::judging::run::record::find_records::find_records;
use crate::judging::run::shard::{HashedCases, ShardCases};
use crate::judging::run::source_info::SourceInfo;
use crate::judging::run::summary::Summary;
use crate::judging::run::summary::tally::Tally;
use crate::judging::run::{Run, RunConfig};
use crate::support::digest::Digest;
use crate::support::files::file_identity::FileIdentity;
use crate::support::files::folder::{create_folder, free_sibling_name};
use crate::support::files::out_file::OutFile;
use crate::support::files::regular_file;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::{Progress, format_duration};
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::format_count;

/// Runs the command.
pub(super) fn run(args: &JudgeArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let junit = check_junit(args.junit.as_ref(), &args.source.files())?;
    let source = args.source.path.display().to_string();
    with_junit(junit.as_ref(), "acem3 judge", source, |junit| judge_source(args, verbosity, junit))
}

/// Judges the source. `junit`: the file of `--junit`.
fn judge_source(
    args: &JudgeArgs,
    verbosity: Verbosity,
    junit: Option<&OutFile>,
) -> anyhow::Result<Exit> {
    // A rubric names the criteria that labels of cases may have.
    args.form.to_rubric()?;
    let source = cases::open(&args.source.path, &args.source_options())?;
    let is_new_folder = !args.out.exists();
    let is_manifest_damaged = check_manifest(&args.out)?;
    check_run_files(args)?;
    let shard = SourceShard::from_args(args)?;
    check_same_shard(args, shard.as_ref())?;
    check_baseline(args)?;
    if args.dry_run {
        let mut judge_args = args.judge.clone();
        // The estimate is compared with the limit, which does not end the few verdicts for it.
        judge_args.served.requests.max_cost = None;
        let (mut judge, _) = load_judge(&judge_args, &args.form, verbosity)?;
        return match &shard {
            Some(SourceShard { info, scan, .. }) => {
                dry_run(args, ShardCases::new(source, info, scan), judge.as_mut(), verbosity)
            }
            None => dry_run(args, source, judge.as_mut(), verbosity),
        };
    }
    create_run_folder(args)?;
    let loaded = load_judge(&args.judge, &args.form, verbosity);
    if loaded.is_err() && is_new_folder {
        // An empty folder would look like a run. `remove_dir` does not remove a folder with files.
        let _ = fs::remove_dir(&args.out);
    }
    let (mut judge, hub) = loaded?;
    let earlier = Manifest::read_if_exists(&args.out).ok().flatten();
    let earlier_digest = earlier.as_ref().and_then(|earlier| earlier.records_digest);
    let earlier_usage = earlier.as_ref().and_then(|earlier| earlier.earlier_usage(judge.as_ref()));
    judge.add_earlier_usage(earlier_usage.unwrap_or_default());
    let journal = Journal::open(&args.out, &judge.provenance())?;
    let lost_digest =
        earlier_digest.filter(|digest| journal.records_digest().ok() != Some(*digest));
    let total = source.total.map(|n| args.limit.map_or(n, |limit| n.min(limit)));
    let total = shard.as_ref().map(|shard| shard.info.cases).or(total);
    let digest = shard.as_ref().map(|shard| shard.scan.digest);
    let info = SourceInfo { digest, ..SourceInfo::new(&args.source.path, source.kind) };
    let mut manifest = Manifest::start(info, judge.as_ref(), total);
    manifest.hub = hub;
    manifest.shard = shard.as_ref().map(|shard| shard.info.clone());
    manifest.warning = panel_warning(judge.as_ref(), &args.source, args.limit)?;
    manifest.records_digest = lost_digest;
    manifest.continue_run(earlier.as_ref(), earlier_usage);
    let merged = earlier.as_ref().filter(|run| run.judge_sha256 == manifest.judge_sha256);
    let is_partial_merge =
        merged.is_some_and(|run| run.is_merged() && run.status != RunStatus::Done);
    let merged_source = merged.and_then(|run| run.source.digest);
    manifest.merged = merged.map(|run| run.merged.clone()).unwrap_or_default();
    manifest.judged_after_merge = manifest.is_merged();
    let progress = Progress::new(args.progress, verbosity, total);
    if let Some(shard) = &shard {
        progress.note(&shard.note());
    }
    manifest.warning.iter().for_each(|text| progress.note(&format!("warning: {text}")));
    manifest.servers.iter().for_each(|server| progress.note(&server.describe()));
    if is_manifest_damaged {
        progress.note(&format!("{MANIFEST} is damaged; writing it again"));
    }
    if earlier.is_some_and(|earlier| earlier.lacks_usage()) {
        progress.note(&format!(
            "the earlier command was killed; `usage` in {MANIFEST} and --max-cost do not count its requests"
        ));
    }
    journal.describe_repair().iter().for_each(|note| progress.note(note));
    let run = JudgeRun {
        args,
        source,
        shard,
        judge,
        journal,
        manifest,
        progress,
        start: Instant::now(),
        is_new_folder,
        lost_digest,
        merged_source,
        is_partial_merge,
        junit,
    };
    run.finish()
}

/// A run of the judge over a source.
struct JudgeRun<'a> {
    args: &'a JudgeArgs,
    source: CaseSource,
    /// The part of the source to judge; `None` for all of it.
    shard: Option<SourceShard>,
    judge: Box<dyn Judge>,
    journal: Journal,
    manifest: Manifest,
    progress: Progress,
    start: Instant,
    /// True if this run created the output folder.
    is_new_folder: bool,
    /// Digest of the records of an earlier, finished run, if they were changed since.
    lost_digest: Option<Digest>,
    /// Digest of the cases of the shards that were merged into the folder before.
    merged_source: Option<Digest>,
    /// True if some shards were merged into the folder before, but not all.
    is_partial_merge: bool,
    /// The file of `--junit`.
    junit: Option<&'a OutFile>,
}

impl JudgeRun<'_> {
    /// Judges all cases, writes the manifest and prints the summary.
    fn finish(mut self) -> anyhow::Result<Exit> {
        let args = self.args;
        let assumes_image = self.judge.assumes_image();
        warn_before_run(&self.progress, &mut self.source, args, assumes_image);
        self.manifest.write(&args.out)?;
        let (outcome, tally) = self.judge_all()?;
        let seconds = self.start.elapsed().as_secs_f64();
        let found_digest = self.journal.records_digest().ok();
        // A record that was edited with its checksum looks like one of this run. The earlier digest
        // stays, so that every command that reads the run says so.
        let records_digest = self.lost_digest.or(found_digest);
        self.manifest.update_servers(self.judge.as_ref());
        self.manifest.finish(&outcome, &RunEnd { tally: &tally, records_digest, seconds });
        let written = self.manifest.write(&args.out);
        let is_paid = self.manifest.usage.is_some_and(|usage| usage.requests > 0);
        if outcome.is_err() && !contains_records(&args.out) && !is_paid {
            // A run that failed before its first result leaves no folder that looks like a run.
            drop(self.journal);
            remove_empty_output(&args.out, self.is_new_folder);
            return outcome.map(|_| Exit::Done);
        }
        let is_complete = outcome?;
        written?;
        note_cost(&self.progress, args, self.manifest.usage);
        let renamed = self.manifest.servers.iter().filter_map(ServerReport::describe_other_models);
        renamed.for_each(|note| self.progress.note(&note));
        if !is_complete {
            self.progress.note(&format!(
                "interrupted after {}; run the same command to resume",
                format_count(tally.counts.records, "record")
            ));
            return Ok(Exit::Interrupted);
        }
        if self.lost_digest.is_some_and(|digest| found_digest != Some(digest)) {
            self.progress.note(&format!(
                "{}: not the records that the finished run wrote; some were edited with their \
                 checksums, or the input differs too; judge again with another --out",
                self.journal.path().display()
            ));
        }
        self.print_notes(&tally, seconds);
        if args.judge.knowledge.knowledge.is_some() {
            let verdicts = format_count(tally.counts.judged, "verdict");
            let asked = tally.counts.looked_up;
            self.progress.note(&match asked {
                0 => format!(
                    "the judge looked nothing up for {verdicts}: a judge asks if it follows instructions, or was \
                     trained to ask"
                ),
                asked => format!("the judge looked something up for {asked} of {verdicts}"),
            });
        }
        let summary =
            Summary::from_tally(&tally, self.judge.name(), self.judge.form(), self.journal.path())
                .with_range(self.judge.score_range());
        if !args.hides_summary {
            print_summary(&args.out, args.format, &summary)?;
        }
        let counts = checked_counts(&tally.counts, self.shard.is_some());
        let result = check_unscored(args.max_unscored, &counts);
        let source = args.source.path.display().to_string();
        let properties = vec![("source", source), ("judge", self.judge.name())];
        let results = std::slice::from_ref(&result);
        write_junit(self.junit, "acem3 judge", properties, results)?;
        Ok(exit_status(&result, &tally, &self.progress))
    }

    /// Judges all cases. Returns the outcome (true if the run is complete, or its error) and the
    /// counts.
    fn judge_all(&mut self) -> anyhow::Result<(anyhow::Result<bool>, Tally)> {
        let args = self.args;
        let interrupt = match self.judge.queue() {
            Some(queue) => Interrupt::listen_with_note(queue.interrupt_note())?,
            None => Interrupt::listen()?,
        };
        let config = RunConfig {
            fills_gaps: self.is_partial_merge,
            batch_size: args.judge.batch_size as usize,
            baseline: args.baseline.clone(),
            limit: args.limit.filter(|_| self.shard.is_none()),
            root: cases::base_folder(&args.source.path),
        };
        let images = ImageReader::new(config.root.clone(), ImageLimits::default());
        let outside = OutsideImages::counted();
        let images = images.with_dicom_view(args.source.dicom.to_view());
        let images = images.with_outside_images(outside.clone());
        let mut run =
            Run::new(self.judge.as_mut(), &mut self.journal, images, &mut self.progress, config);
        let outcome = if let Some(SourceShard { info, scan, .. }) = &self.shard {
            run.run(ShardCases::new(&mut self.source, info, scan), &interrupt)
        } else {
            let mut cases = HashedCases::new(&mut self.source, source_hasher(args));
            let outcome = run.run(&mut cases, &interrupt);
            self.manifest.source.digest = matches!(outcome, Ok(true)).then(|| cases.digest());
            if self.manifest.source.digest.is_some_and(|d| self.merged_source != Some(d)) {
                // The records are no longer those of the shards.
                self.manifest.merged.clear();
                self.manifest.judged_after_merge = false;
            }
            outcome
        };
        let tally = run.tally().clone();
        self.progress.finish();
        if let Some(note) = outside.note() {
            self.progress.note(&note);
        }
        let outcome = match outcome {
            Ok(true) => {
                // A shard that is not the last one leaves the end of the source unread.
                if self.shard.as_ref().is_none_or(|shard| shard.info.index == shard.info.of) {
                    warn_after_run(&self.progress, &mut self.source, args);
                }
                // A shard may have no case, or only unreadable ones.
                let checked =
                    if self.shard.is_none() { check_not_empty(args, &tally) } else { Ok(()) };
                checked.map(|()| true)
            }
            other => other,
        };
        Ok((outcome, tally))
    }

    /// Prints the number of new and superseded verdicts.
    fn print_notes(&self, tally: &Tally, seconds: f64) {
        let new = format_count(tally.new_verdicts, "new verdict");
        self.progress.note(&format!("{new} in {}", format_duration(seconds)));
        if self.journal.superseded_count() > 0 {
            let superseded =
                format_count(self.journal.superseded_count() as u64, "superseded verdict");
            self.progress.note(&format!("moved {superseded} to {SUPERSEDED_FILE}"));
        }
    }
}

/// Checks the files of an earlier run in the output folder: they are regular files, and none is an
/// input of this run.
fn check_run_files(args: &JudgeArgs) -> anyhow::Result<()> {
    for name in [RECORDS, SUPERSEDED_FILE, DAMAGED_FILE, MANIFEST] {
        let path = args.out.join(name);
        let Some(own) = FileIdentity::of(&path) else {
            continue;
        };
        regular_file::check_regular(&path)
            .with_context(|| format!("--out {}: {name}", args.out.display()))?;
        let mut inputs = args.source.files().into_iter();
        if let Some(input) = inputs.find(|input| FileIdentity::of(input).as_ref() == Some(&own)) {
            bail!(
                "--out {}: its {name} is an input of this command ({})\n\
                 hint: choose another folder, for example --out {}",
                args.out.display(),
                input.display(),
                free_sibling_name(&args.out).display()
            );
        }
    }
    Ok(())
}

/// Returns true if the folder of a run has a damaged manifest.
///
/// # Errors
///
/// The folder has a `run.json` and no records: it may be the file of another program.
fn check_manifest(folder: &Path) -> anyhow::Result<bool> {
    match Manifest::read_if_exists(folder) {
        Ok(_) => Ok(false),
        Err(_) if find_records(&folder.join(RECORDS)).is_some() => Ok(true),
        Err(error) => Err(anyhow!("{}", error.root_cause()).context(format!(
            "{}: not a run manifest of acem3\n\
             hint: use another folder with --out, or move this file",
            folder.join(MANIFEST).display()
        ))),
    }
}

/// Creates the folder of the run. With `--no-resume`, a folder with records is an error.
fn create_run_folder(args: &JudgeArgs) -> anyhow::Result<()> {
    let out = &args.out;
    if args.no_resume && contains_records(out) {
        bail!(
            "--no-resume: {} already contains verdicts\n\
             hint: choose another folder, for example --out {}, or resume without --no-resume",
            out.display(),
            free_sibling_name(out).display()
        );
    }
    create_folder(out)
}
