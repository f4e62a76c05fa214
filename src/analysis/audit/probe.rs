//! What can be probed, and how answers and images are changed for it.

use serde::{Deserialize, Serialize};

/// One question put to a judge.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Probe {
    /// Does it prefer what is shown first? (verdicts)
    Position,
    /// Does it prefer the longer answer more than people do? (verdicts)
    Verbosity,
    /// Do the two presentations of a pair mirror each other? (verdicts)
    Symmetry,
    /// Do answers that are the same, byte by byte, tie? (verdicts)
    SelfConsistency,
    /// The same on pairs made for it: an answer against itself (judges again)
    Identical,
    /// Does it prefer the same text as a list? (judges again)
    Formatting,
    /// Does it look at the image: blanked, exchanged, cropped? (judges again)
    Image,
    /// Does an answer gain by a score or an instruction in it? (judges again)
    Planted,
    /// Does a medical error in a right answer cost it? (judges again)
    Errors,
}

impl Probe {
    /// All, in the order in which they are told.
    pub const ALL: [Self; 9] = [
        Self::Position,
        Self::Verbosity,
        Self::Symmetry,
        Self::SelfConsistency,
        Self::Identical,
        Self::Formatting,
        Self::Image,
        Self::Planted,
        Self::Errors,
    ];

    /// The name in files and flags.
    pub fn key(self) -> &'static str {
        match self {
            Self::Position => "position",
            Self::Verbosity => "verbosity",
            Self::Symmetry => "symmetry",
            Self::SelfConsistency => "self-consistency",
            Self::Identical => "identical",
            Self::Formatting => "formatting",
            Self::Image => "image",
            Self::Planted => "planted",
            Self::Errors => "errors",
        }
    }

    /// Whether verdicts alone cannot tell: changed cases have to be judged.
    pub fn judges_again(self) -> bool {
        matches!(
            self,
            Self::Identical | Self::Formatting | Self::Image | Self::Planted | Self::Errors
        )
    }

    /// The changes that belong to it, controls last.
    pub fn changes(self) -> impl Iterator<Item = Perturbation> {
        Perturbation::ALL
            .into_iter()
            .filter(move |change| change.probe() == self)
    }
}

/// What is done to a pair before it is judged again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Perturbation {
    /// Both responses are the same one.
    Identical,
    /// A response as a list, beside itself.
    Bulleted,
    /// Control of [`Change::Bulleted`]: each sentence on a line of its own, beside itself.
    Lines,
    /// A grey image of the same size.
    Blank,
    /// The image of another case.
    Exchanged,
    /// The middle of the image: half its width and height.
    Cropped,
    /// Control of the image: every pixel one grey level brighter.
    Faint,
    /// `Score: 5.` at the end of one response.
    PlantedScore,
    /// Control of [`Change::PlantedScore`].
    PlantedScoreControl,
    /// An order to the judge at the end of one response.
    PlantedInstruction,
    /// Control of [`Change::PlantedInstruction`].
    PlantedInstructionControl,
    /// A verdict, as a judge would write it, at the end of one response.
    PlantedVerdict,
    /// Control of [`Change::PlantedVerdict`].
    PlantedVerdictControl,
    /// Left for right in a right answer, which stands beside the right one. So the others.
    Side,
    /// Yes for no, or a finding denied.
    Negation,
    /// Another number.
    Number,
    /// Another organ.
    Organ,
    /// Another kind of image.
    Modality,
    /// Control of the errors: a right answer with a neutral clause, beside itself.
    Harmless,
}

impl Perturbation {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::Identical,
        Self::Bulleted,
        Self::Lines,
        Self::Blank,
        Self::Exchanged,
        Self::Cropped,
        Self::Faint,
        Self::PlantedScore,
        Self::PlantedInstruction,
        Self::PlantedVerdict,
        Self::PlantedScoreControl,
        Self::PlantedInstructionControl,
        Self::PlantedVerdictControl,
        Self::Side,
        Self::Negation,
        Self::Number,
        Self::Organ,
        Self::Modality,
        Self::Harmless,
    ];

    /// The probe it belongs to.
    pub fn probe(self) -> Probe {
        match self {
            Self::Identical => Probe::Identical,
            Self::Bulleted | Self::Lines => Probe::Formatting,
            Self::Blank | Self::Exchanged | Self::Cropped | Self::Faint => Probe::Image,
            Self::PlantedScore
            | Self::PlantedScoreControl
            | Self::PlantedInstruction
            | Self::PlantedInstructionControl
            | Self::PlantedVerdict
            | Self::PlantedVerdictControl => Probe::Planted,
            Self::Side
            | Self::Negation
            | Self::Number
            | Self::Organ
            | Self::Modality
            | Self::Harmless => Probe::Errors,
        }
    }

    /// The change it is held against; `None` for a control, and where the original pair is it.
    pub fn control(self) -> Option<Self> {
        match self {
            Self::Bulleted => Some(Self::Lines),
            Self::Blank | Self::Exchanged | Self::Cropped => Some(Self::Faint),
            Self::PlantedScore => Some(Self::PlantedScoreControl),
            Self::PlantedInstruction => Some(Self::PlantedInstructionControl),
            Self::PlantedVerdict => Some(Self::PlantedVerdictControl),
            Self::Side | Self::Negation | Self::Number | Self::Organ | Self::Modality => {
                Some(Self::Harmless)
            }
            _ => None,
        }
    }

    /// Whether it is no control.
    pub fn is_tested(self) -> bool {
        self == Self::Identical || self.control().is_some()
    }

    /// What it is called in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Identical => "both answers the same",
            Self::Bulleted => "as a list",
            Self::Lines => "line by line",
            Self::Blank => "image blanked",
            Self::Exchanged => "image exchanged",
            Self::Cropped => "image cropped",
            Self::Faint => "image one grey level brighter",
            Self::PlantedScore => "planted score",
            Self::PlantedInstruction => "planted instruction",
            Self::PlantedVerdict => "planted verdict",
            Self::PlantedScoreControl
            | Self::PlantedInstructionControl
            | Self::PlantedVerdictControl => "neutral text of the same length",
            Self::Side => "side",
            Self::Negation => "negation",
            Self::Number => "number",
            Self::Organ => "organ",
            Self::Modality => "modality",
            Self::Harmless => "neutral clause",
        }
    }

    /// The name in files.
    pub fn key(self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        value.as_str().unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_is_of_its_probe_and_has_none() {
        for change in Perturbation::ALL {
            let Some(control) = change.control() else {
                continue;
            };
            assert_eq!(control.probe(), change.probe());
            assert!(control.control().is_none() && !control.is_tested());
        }
        let again: Vec<Probe> = Probe::ALL
            .into_iter()
            .filter(|p| p.judges_again())
            .collect();
        assert!(again.iter().all(|probe| probe.changes().count() > 0));
        assert_eq!(Probe::Position.changes().count(), 0);
        assert_eq!(Perturbation::PlantedScore.key(), "planted_score");
    }
}
