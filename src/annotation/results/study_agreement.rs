//! The agreement of the raters so far, and what they think of the judges.

use super::judge_ratings::JudgeRating;
use super::live_agreement::RaterAgreement;
use super::rated_items::rated_targets;
use crate::annotation::journal::RatingState;
use crate::annotation::study::{Part, StudyPlan};
use crate::statistics::IccForm;

/// The agreement on every target, with intervals.
#[derive(Clone, Debug)]
pub(crate) struct StudyAgreement {
    /// Which form of ICC fits the assignment.
    pub(crate) icc_form: IccForm,
    /// Agreement by target.
    pub(crate) targets: Vec<RaterAgreement>,
    /// What the raters think of the judges.
    pub(crate) judges: Vec<JudgeRating>,
}

impl StudyAgreement {
    /// Computes the agreement.
    pub(crate) fn new(plan: &StudyPlan, ratings: &RatingState) -> Self {
        let icc_form = icc_form(plan);
        let targets = rated_targets(plan, ratings);
        let judged = targets.iter().filter(|target| target.part == Part::Evaluations);
        Self {
            icc_form,
            judges: judged.map(|target| JudgeRating::new(target, &plan.judges)).collect(),
            targets: targets.iter().map(|target| RaterAgreement::new(target, icc_form)).collect(),
        }
    }
}

/// Returns ICC(2,1) if every rater has every case, else ICC(1,1), which allows different raters for each case.
fn icc_form(plan: &StudyPlan) -> IccForm {
    let is_complete = plan.assignment.iter().all(|tasks| tasks.len() == plan.tasks.len());
    if is_complete { IccForm::TwoSingle } else { IccForm::OneSingle }
}
