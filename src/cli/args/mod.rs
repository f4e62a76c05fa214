//! Types of the command-line arguments, with the help texts.
//!
//! [`crate::cli::commands`] runs the commands.

mod analysis;
mod annotate;
mod answers;
mod command;
mod completions;
mod construction;
mod data;
mod judge;
mod knowledge;
mod man;
mod merge;
mod panel;
mod preferences;
mod quality;
mod review;
mod root;
mod shared;
mod training;
mod verify;

pub use analysis::{
    AgreeArgs, AuditArgs, CalibrateApplyArgs, CalibrateArgs, CalibrateCommand, CalibrateFitArgs,
    MetricModelArgs, MetricsArgs, ProbeChoice, RankArgs, ReportArgs, ReportFormat, ThresholdArgs,
};
pub use annotate::AnnotateArgs;
pub use answers::{AnswererArgs, AnswersArgs, QuestionArgs};
pub use command::Command;
pub use completions::CompletionsArgs;
pub use construction::{CheckRuleArgs, CheckSource, EvaluationsArgs, StudentArgs};
pub use data::{
    CheckArgs, DataArgs, DataCommand, ImportArgs, PhantomArgs, SchemaArgs, SchemaFileType,
};
pub use judge::JudgeArgs;
pub use knowledge::{IndexArgs, SearchArgs};
pub use man::ManArgs;
pub use merge::MergeArgs;
pub use panel::{PanelArgs, PanelCommand, PanelExportArgs, PanelInspectArgs, PanelPromptsArgs};
pub use preferences::PreferenceArgs;
pub use quality::{QualityArgs, SentenceEncoderArgs};
pub use review::{ReviewApplyArgs, ReviewArgs, ReviewCommand, ReviewSampleArgs};
pub use root::Cli;
pub use shared::{
    BootstrapArgs, BoundValue, CompleteArgs, DeviceArgs, DicomArgs, FormArg, FormArgs,
    JudgePanelArgs, LabelArgs, LabelScale, OutputFormat, ReferenceUse, ShardArg, ShardSource,
    SourceArgs, TableFormat, read_rubric,
};
pub use training::{
    EncodersArgs, IntrospectArgs, TrainAblateArgs, TrainArgs, TrainCommand, TrainEvalArgs,
    TrainRunArgs,
};
pub use verify::VerifyArgs;
