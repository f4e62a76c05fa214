//! Thresholds: what a figure may be at most, or must be at least.

use serde::{Deserialize, Serialize};

use super::probe::{Perturbation, Probe};
use super::result::{AuditResult, Finding, MeasureUnit};
use super::{position, verbosity};
use crate::analysis::audit::audit_estimate::AuditEstimate;
use crate::analysis::audit::image_probes::{MISSED, MOVED};
use crate::analysis::audit::response_probes::GAIN;
use crate::analysis::audit::symmetry::{NOT_TIED, SHIFT};

/// A threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// What is limited.
    pub kind: ThresholdKind,
    /// The limit, in the unit that is shown: percent, percentage points or points of score.
    pub value: f64,
}

/// What can be limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThresholdKind {
    /// Verdicts that flip with the order. Percent.
    FlipRate,
    /// Accuracy with the better answer first, less that with it second. Percentage points.
    PositionGap,
    /// The judge's preference for the longer answer, less the labels'. Percentage points.
    VerbosityGap,
    /// How far a score moves with the place. Points.
    Asymmetry,
    /// Presentations of identical answers that do not tie. Percent.
    IdenticalNotTied,
    /// What a text gains as a list. Points.
    FormattingGain,
    /// What the best-paid planted text gains. Points.
    PlantedGain,
    /// Medical errors that cost nothing. Percent.
    ErrorsMissed,
    /// How far the knowledge score moves, at least, as the image is exchanged, or blanked where there is no
    /// other. Points.
    ImageEffect,
}

/// A threshold, held against what was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThresholdResult {
    /// The flag that set it.
    pub flag: String,
    /// The limit, in the unit that is shown.
    pub limit: f64,
    /// What was found, in the same unit; `None` where it could not be measured.
    pub value: Option<f64>,
    /// Whether it failed. What could not be measured has.
    pub failed: bool,
    /// How, in words.
    pub words: String,
}

impl ThresholdKind {
    /// The flag that sets it.
    pub fn flag(self) -> &'static str {
        match self {
            Self::FlipRate => "--max-flip-rate",
            Self::PositionGap => "--max-position-gap",
            Self::VerbosityGap => "--max-verbosity-gap",
            Self::Asymmetry => "--max-asymmetry",
            Self::IdenticalNotTied => "--max-identical-not-tied",
            Self::FormattingGain => "--max-formatting-gain",
            Self::PlantedGain => "--max-planted-gain",
            Self::ErrorsMissed => "--max-errors-missed",
            Self::ImageEffect => "--min-image-effect",
        }
    }

    /// The probes that measure it, the best first.
    pub fn probes(self) -> &'static [Probe] {
        match self {
            Self::FlipRate | Self::PositionGap => &[Probe::Position],
            Self::VerbosityGap => &[Probe::Verbosity],
            Self::Asymmetry => &[Probe::Symmetry],
            Self::IdenticalNotTied => &[Probe::Identical, Probe::SelfConsistency],
            Self::FormattingGain => &[Probe::Formatting],
            Self::PlantedGain => &[Probe::Planted],
            Self::ErrorsMissed => &[Probe::Errors],
            Self::ImageEffect => &[Probe::Image],
        }
    }

    fn unit(self) -> MeasureUnit {
        match self {
            Self::FlipRate | Self::IdenticalNotTied | Self::ErrorsMissed => MeasureUnit::Share,
            Self::PositionGap | Self::VerbosityGap => MeasureUnit::ShareDifference,
            _ => MeasureUnit::Points,
        }
    }

    /// The reading that is limited.
    fn reading(self, finding: &Finding) -> Option<AuditEstimate> {
        let net = |key: &str| finding.measure(key).map(|m| m.net().clone());
        let plain = |key: &str| finding.measure(key).map(|m| m.reading.clone());
        let largest = |of: &[Perturbation]| {
            let readings = of
                .iter()
                .filter_map(|c| net(&format!("{GAIN}:{}", c.key())));
            readings.max_by(|a, b| {
                let value = |r: &AuditEstimate| r.value.unwrap_or(f64::NEG_INFINITY);
                value(a).total_cmp(&value(b))
            })
        };
        match self {
            Self::FlipRate => plain(position::FLIP_RATE),
            Self::PositionGap => plain(position::GAP),
            Self::VerbosityGap => plain(verbosity::GAP),
            Self::Asymmetry => plain(SHIFT),
            Self::IdenticalNotTied => plain(NOT_TIED),
            Self::FormattingGain => net(GAIN),
            Self::PlantedGain => largest(&[
                Perturbation::PlantedScore,
                Perturbation::PlantedInstruction,
                Perturbation::PlantedVerdict,
            ]),
            Self::ErrorsMissed => plain(MISSED),
            Self::ImageEffect => [Perturbation::Exchanged, Perturbation::Blank]
                .iter()
                .find_map(|change| net(&format!("{MOVED}:{}", change.key()))),
        }
    }
}

impl Threshold {
    /// Holds an audit to it.
    pub fn check(self, audit: &AuditResult) -> ThresholdResult {
        let unit = self.kind.unit();
        let (flag, limit) = (self.kind.flag().to_owned(), self.value);
        let findings = self.kind.probes().iter().filter_map(|p| audit.finding(*p));
        let mut why = "its probe was not asked for".to_owned();
        for finding in findings {
            let Some(reading) = self.kind.reading(finding) else {
                why.clone_from(&finding.words);
                continue;
            };
            let Some(value) = reading.value else {
                why = reading.undefined.unwrap_or_default();
                continue;
            };
            let shown = match unit {
                MeasureUnit::Share | MeasureUnit::ShareDifference => 100.0 * value,
                _ => value,
            };
            let failed = match self.kind {
                ThresholdKind::ImageEffect => shown < limit,
                ThresholdKind::PositionGap | ThresholdKind::VerbosityGap => shown.abs() > limit,
                _ => shown > limit,
            };
            let kept = if failed { "not kept" } else { "kept" };
            return ThresholdResult {
                words: format!("{flag} {limit} is {kept}: {}", reading.words(unit)),
                value: Some(shown),
                flag,
                limit,
                failed,
            };
        }
        ThresholdResult {
            words: format!("{flag} {limit} cannot be held: {why}"),
            flag,
            limit,
            value: None,
            failed: true,
        }
    }
}
