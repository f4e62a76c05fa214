//! Types of the command-line arguments, with the help texts.
//!
//! [`crate::cli::commands`] runs the commands.

mod analysis;
mod command;
mod completions;
mod data;
mod judge;
mod man;
mod panel;
mod root;
mod shared;
mod training;

pub use analysis::{
    AgreeArgs, AuditArgs, CalibrateApplyArgs, CalibrateArgs, CalibrateCommand, CalibrateFitArgs,
    MetricModelArgs, MetricsArgs, ProbeChoice, RankArgs, ReportArgs, ReportFormat, ThresholdArgs,
};
pub use command::Command;
pub use completions::CompletionsArgs;
pub use data::{
    CheckArgs, DataArgs, DataCommand, ImportArgs, PhantomArgs, PreferenceArgs, QualityArgs,
    SchemaArgs, SchemaFileType,
};
pub use judge::JudgeArgs;
pub use man::ManArgs;
pub use panel::{PanelArgs, PanelCommand, PanelInspectArgs, PanelPromptsArgs};
pub use root::Cli;
pub use shared::{
    BootstrapArgs, BoundValue, CompleteArgs, DeviceArgs, DicomArgs, FormArgs, JudgePanelArgs,
    LabelArgs, LabelScale, OutputFormat, ReferenceUse, SourceArgs, TableFormat,
};
pub use training::{
    EncodersArgs, IntrospectArgs, TrainAblateArgs, TrainArgs, TrainCommand, TrainEvalArgs,
    TrainRunArgs,
};
