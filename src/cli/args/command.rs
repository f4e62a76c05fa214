//! The commands.

use clap::Subcommand;

use super::analysis::{AgreeArgs, AuditArgs, CalibrateArgs, MetricsArgs, RankArgs, ReportArgs};
use super::annotate::AnnotateArgs;
use super::completions::CompletionsArgs;
use super::data::DataArgs;
use super::judge::JudgeArgs;
use super::man::ManArgs;
use super::merge::MergeArgs;
use super::panel::PanelArgs;
use super::training::{EncodersArgs, TrainArgs, TrainCommand};
use super::verify::VerifyArgs;
use crate::support::device::environment::Workload;

/// A command with its arguments.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Judge the responses of a folder, file or data set: in pairs, alone, in lists, or for correctness
    Judge(Box<JudgeArgs>),
    /// Join the runs over all shards of the cases, which `judge --shard I/N` wrote
    Merge(MergeArgs),
    /// Check the records of a run, and judge a sample of them again
    Verify(Box<VerifyArgs>),
    /// Measure agreement between a judge and human labels, and among raters
    Agree(Box<AgreeArgs>),
    /// Audit a judge: position and verbosity bias, prompt injection, image sensitivity and more
    Audit(Box<AuditArgs>),
    /// Rank the models of a run, with intervals and pairwise significance tests
    Rank(RankArgs),
    /// Write a report of a run: statistics with intervals, and all cases to browse
    Report(Box<ReportArgs>),
    /// Calibrate the scores of a judge to the label scale
    Calibrate(Box<CalibrateArgs>),
    /// Compare answers with references: exact match, F1, BLEU, ROUGE and others
    Metrics(MetricsArgs),
    /// Serve a site on which doctors rate responses, double-blind
    Annotate(Box<AnnotateArgs>),
    /// Generate, check and rate data
    Data(DataArgs),
    /// Train and evaluate panels
    Train(TrainArgs),
    /// Compare vision encoders with the same training budget
    Encoders(EncodersArgs),
    /// Inspect or export a panel: the four models that judge together
    Panel(PanelArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Write the man pages, one per command
    Man(ManArgs),
}

impl Command {
    /// Returns what the command computes.
    pub fn workload(&self) -> Workload {
        let is_training = match self {
            Self::Train(args) => !matches!(args.command, TrainCommand::Eval(_)),
            Self::Encoders(_) => true,
            _ => false,
        };
        if is_training { Workload::Training } else { Workload::Judging }
    }
}
