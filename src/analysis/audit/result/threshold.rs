//! Thresholds: the largest or smallest value of a measure that passes.

use super::audit_result::AuditResult;
use super::estimate::AuditEstimate;
use super::finding::Finding;
use super::measure::{AuditMeasure, MeasureName};
use super::measure_names as names;
use super::threshold_result::ThresholdResult;
use super::unit::MeasureUnit;
use crate::analysis::audit::perturbations::Perturbation;
use crate::analysis::audit::probe::Probe;

/// A threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// The limited quantity.
    pub kind: ThresholdKind,
    /// The limit, in the printed unit: percent, percentage points or points of score.
    pub value: f64,
}

/// A quantity with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThresholdKind {
    /// Verdicts that flip with the presentation order. Percent.
    FlipRate,
    /// Accuracy with the better response first minus accuracy with it second. Percentage points.
    PositionGap,
    /// Preference for the longer response: judge minus labels. Percentage points.
    VerbosityGap,
    /// Mean absolute change of a score with the presentation order. Points.
    Asymmetry,
    /// Presentations of identical responses that do not tie. Percent.
    IdenticalNotTied,
    /// Score gain of a response formatted as a list. Points.
    FormattingGain,
    /// Score gain of the most effective planted text, relative to neutral text. Points.
    PlantedGain,
    /// Preferences that the most effective planted text turns, relative to the unmodified response.
    /// Percent.
    PlantedTurned,
    /// Score gain of the most effective neutral text, relative to the unmodified response. Points.
    NeutralGain,
    /// Preferences that the most effective neutral text turns. Percent.
    NeutralTurned,
    /// Medical errors without a score drop. Percent.
    ErrorsMissed,
    /// Change of the knowledge score with the image of another case, or with a blank image if there
    /// is no other. Points.
    ImageEffect,
    /// Change of the knowledge score with the reference of another case. Points.
    ReferenceEffect,
}

/// Properties of a threshold.
struct ThresholdSpec {
    flag: &'static str,
    /// The probes that measure it, the preferred one first.
    probes: &'static [Probe],
    limited: LimitedEstimate,
    direction: LimitDirection,
}

/// The estimate that a threshold limits.
enum LimitedEstimate {
    /// A measure; its control is ignored.
    Plain(MeasureName),
    /// A measure minus its control.
    Net(MeasureName),
    /// The largest measure of a probe's perturbations, each minus its control.
    LargestNet(MeasureName, Probe),
    /// The largest measure of a probe's perturbations; their controls are ignored.
    LargestPlain(MeasureName, Probe),
    /// The measure of the first of these perturbations with a measure, minus its control.
    FirstNet(MeasureName, &'static [Perturbation]),
}

/// Values that pass a limit.
#[derive(Clone, Copy)]
enum LimitDirection {
    /// Values up to the limit.
    Max,
    /// Values whose magnitude is up to the limit.
    MaxAbsolute,
    /// Values of at least the limit.
    Min,
}

impl ThresholdKind {
    fn spec(self) -> ThresholdSpec {
        use LimitDirection::{Max, MaxAbsolute, Min};
        use LimitedEstimate::{FirstNet, LargestNet, LargestPlain, Net, Plain};
        let spec =
            |flag, probes, limited, direction| ThresholdSpec { flag, probes, limited, direction };
        match self {
            Self::FlipRate => {
                spec("--max-flip-rate", &[Probe::Position], Plain(names::FLIP_RATE), Max)
            }
            Self::PositionGap => spec(
                "--max-position-gap",
                &[Probe::Position],
                Plain(names::ACCURACY_GAP),
                MaxAbsolute,
            ),
            Self::VerbosityGap => spec(
                "--max-verbosity-gap",
                &[Probe::Verbosity],
                Plain(names::LONGER_GAP),
                MaxAbsolute,
            ),
            Self::Asymmetry => {
                spec("--max-asymmetry", &[Probe::Symmetry], Plain(names::ABSOLUTE_SHIFT), Max)
            }
            Self::IdenticalNotTied => spec(
                "--max-identical-not-tied",
                &[Probe::Identical, Probe::SelfConsistency],
                Plain(names::NOT_TIED),
                Max,
            ),
            Self::FormattingGain => {
                spec("--max-formatting-gain", &[Probe::Formatting], Net(names::LIST_GAIN), Max)
            }
            Self::PlantedGain => spec(
                "--max-planted-gain",
                &[Probe::Planted],
                LargestNet(names::INJECTION_GAIN, Probe::Planted),
                Max,
            ),
            Self::PlantedTurned => spec(
                "--max-planted-turned",
                &[Probe::Planted],
                LargestPlain(names::INJECTION_PREFERENCE_GAIN, Probe::Planted),
                Max,
            ),
            Self::NeutralGain => spec(
                "--max-neutral-gain",
                &[Probe::Neutral],
                LargestPlain(names::INJECTION_GAIN, Probe::Neutral),
                Max,
            ),
            Self::NeutralTurned => spec(
                "--max-neutral-turned",
                &[Probe::Neutral],
                LargestPlain(names::INJECTION_PREFERENCE_GAIN, Probe::Neutral),
                Max,
            ),
            Self::ErrorsMissed => {
                spec("--max-errors-missed", &[Probe::Errors], Plain(names::ERRORS_MISSED), Max)
            }
            Self::ImageEffect => spec(
                "--min-image-effect",
                &[Probe::Image],
                FirstNet(names::KNOWLEDGE_CHANGE, &[Perturbation::Exchanged, Perturbation::Blank]),
                Min,
            ),
            Self::ReferenceEffect => spec(
                "--min-reference-effect",
                &[Probe::Reference],
                FirstNet(names::KNOWLEDGE_CHANGE, &[Perturbation::ReferenceExchanged]),
                Min,
            ),
        }
    }

    /// Returns the flag of the threshold.
    pub fn flag(self) -> &'static str {
        self.spec().flag
    }

    /// Returns the probes that measure it, the preferred one first.
    pub fn probes(self) -> &'static [Probe] {
        self.spec().probes
    }
}

impl LimitedEstimate {
    fn unit(&self) -> MeasureUnit {
        match self {
            Self::Plain(name)
            | Self::Net(name)
            | Self::LargestNet(name, _)
            | Self::LargestPlain(name, _)
            | Self::FirstNet(name, _) => name.unit,
        }
    }

    fn find<'a>(&self, finding: &'a Finding) -> Option<&'a AuditEstimate> {
        let net = |key: &str| finding.measure(key).map(AuditMeasure::net_of_control);
        match self {
            Self::Plain(name) => finding.measure(name.key).map(|m| &m.estimate),
            Self::Net(name) => net(name.key),
            Self::LargestNet(name, probe) => largest(
                Perturbation::tested_by(*probe).filter_map(|p| net(&name.key_for(&p.key()))),
            ),
            Self::LargestPlain(name, probe) => largest(
                Perturbation::tested_by(*probe)
                    .filter_map(|p| finding.measure(&name.key_for(&p.key())))
                    .map(|measure| &measure.estimate),
            ),
            Self::FirstNet(name, perturbations) => {
                perturbations.iter().find_map(|p| net(&name.key_for(&p.key())))
            }
        }
    }
}

/// Returns the estimate with the largest value.
fn largest<'a>(estimates: impl Iterator<Item = &'a AuditEstimate>) -> Option<&'a AuditEstimate> {
    let value = |estimate: &AuditEstimate| estimate.value.unwrap_or(f64::NEG_INFINITY);
    estimates.max_by(|a, b| value(a).total_cmp(&value(b)))
}

impl LimitDirection {
    fn passes(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Max => value <= limit,
            Self::MaxAbsolute => value.abs() <= limit,
            Self::Min => value >= limit,
        }
    }
}

impl Threshold {
    /// Compares an audit with the threshold.
    pub fn evaluate(self, audit: &AuditResult) -> ThresholdResult {
        let spec = self.kind.spec();
        let unit = spec.limited.unit();
        let (flag, limit) = (spec.flag.to_owned(), self.value);
        let findings = spec.probes.iter().filter_map(|p| audit.finding(*p));
        let mut reason = "its probe was not requested".to_owned();
        for finding in findings {
            let Some(estimate) = spec.limited.find(finding) else {
                reason.clone_from(&finding.summary);
                continue;
            };
            let Some(value) = estimate.value else {
                reason = estimate.undefined.clone().unwrap_or_default();
                continue;
            };
            let printed = match unit {
                MeasureUnit::Proportion | MeasureUnit::ProportionDifference => 100.0 * value,
                _ => value,
            };
            let failed = !spec.direction.passes(printed, limit);
            let outcome = if failed { "failed" } else { "passed" };
            return ThresholdResult {
                summary: format!("{flag} {limit} {outcome}: {}", estimate.describe(unit)),
                value: Some(printed),
                flag,
                limit,
                failed,
            };
        }
        ThresholdResult {
            summary: format!("{flag} {limit} could not be measured: {reason}"),
            flag,
            limit,
            value: None,
            failed: true,
        }
    }
}
