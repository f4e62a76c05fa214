//! Table of defects: the phrases that show each defect, and the scores it lowers.

use acem3_experts::Criterion::{
    AddressingMultipleConcerns as Amc, ClarityOfResponse as Cr, ContextAwareness as Ca,
    ExpressionIntegrity as Ei, FactualAccuracy as Fa, HandlingUncertainty as Hu,
    LanguageAppropriateness as La, RelevanceToCondition as Rpc, ToneAndEmpathy as Te,
    UpToDateInformation as Ui,
};

use super::rules::{Defect, Rule};

/// Every defect, grouped by family.
pub const RULES: &[Rule] = &[
    Rule {
        defect: Defect::Outdated,
        key: "outdated",
        family: "outdated",
        lowers: &[(Ui, 1)],
        phrases: &[
            "Bloodletting is the usual treatment.",
            "Leeches should be applied at once.",
            "Mercury pills are advised for this.",
        ],
    },
    Rule {
        defect: Defect::OldTerm,
        key: "old_term",
        family: "outdated",
        lowers: &[(Ui, 3)],
        phrases: &["The skiagraph shows it so.", "Your humours may be out of balance."],
    },
    Rule {
        defect: Defect::Certain,
        key: "certain",
        family: "overconfident",
        lowers: &[(Hu, 1)],
        phrases: &[
            "This is absolutely certain, no check is ever needed.",
            "There is no doubt at all and never will be.",
        ],
    },
    Rule {
        defect: Defect::TooSure,
        key: "too_sure",
        family: "overconfident",
        lowers: &[(Hu, 3)],
        phrases: &["This is definitely so.", "I am quite sure of it."],
    },
    Rule {
        defect: Defect::Vague,
        key: "vague",
        family: "vague",
        lowers: &[(Hu, 2)],
        phrases: &["Or perhaps not, who knows.", "It may be so or it may be otherwise."],
    },
    Rule {
        defect: Defect::Evasive,
        key: "evasive",
        family: "evasive",
        lowers: &[(Fa, 0), (Hu, 2), (Amc, 0)],
        phrases: &["I cannot say anything about that.", "That is hard to tell from here."],
    },
    Rule {
        defect: Defect::Muddled,
        key: "muddled",
        family: "muddled",
        lowers: &[(Cr, 1)],
        phrases: &[
            "Well, as before, or after, or neither, that is, so to say, this:",
            "Which of what, when it was not, then again, therefore:",
        ],
    },
    Rule {
        defect: Defect::Winding,
        key: "winding",
        family: "muddled",
        lowers: &[(Cr, 3)],
        phrases: &["To put it one way or another:", "Coming to the point by a detour:"],
    },
    Rule {
        defect: Defect::Jargon,
        key: "jargon",
        family: "jargon",
        lowers: &[(La, 1)],
        phrases: &["Cf. SOL, NOS, sine DDx, r/o mets.", "Foci s/p ROI, HU n/a, cave PVE."],
    },
    Rule {
        defect: Defect::Slang,
        key: "slang",
        family: "jargon",
        lowers: &[(La, 3)],
        phrases: &["Yeah, that's kinda it.", "No biggie, dude."],
    },
    Rule {
        defect: Defect::Insult,
        key: "insult",
        family: "rude",
        lowers: &[(Te, 0)],
        phrases: &["You are an idiot.", "Only a fool like you would ask."],
    },
    Rule {
        defect: Defect::Rude,
        key: "rude",
        family: "rude",
        lowers: &[(Te, 1)],
        phrases: &["Stop wasting my time.", "What a stupid question."],
    },
    Rule {
        defect: Defect::Curt,
        key: "curt",
        family: "curt",
        lowers: &[(Te, 3)],
        phrases: &["That is all.", "Next question."],
    },
    Rule {
        defect: Defect::Truncated,
        key: "truncated",
        family: "truncated",
        lowers: &[(Ei, 2)],
        phrases: &[
            "A radiologist should confirm this soon.",
            "It would be good to compare this with the last image.",
            "Please ask your doctor whether more images are needed.",
        ],
    },
    Rule {
        defect: Defect::Garbled,
        key: "garbled",
        family: "garbled",
        lowers: &[(Cr, 3), (Ei, 1)],
        phrases: &[
            "please show this result to your doctor.",
            "another image should follow next month.",
        ],
    },
    Rule {
        defect: Defect::Bare,
        key: "bare",
        family: "bare",
        lowers: &[(Cr, 4), (Te, 4), (Ei, 4)],
        phrases: &[],
    },
    Rule {
        defect: Defect::Generic,
        key: "generic",
        family: "generic",
        lowers: &[(Ca, 1)],
        phrases: &[
            "This is from a textbook, not from your image.",
            "I did not look at the image, most are like that.",
        ],
    },
    Rule {
        defect: Defect::OtherPicture,
        key: "other_picture",
        family: "other_picture",
        lowers: &[(Ca, 2)],
        phrases: &["The ultrasound video shows it well.", "The photograph of the skin shows it."],
    },
    Rule {
        defect: Defect::OffTopic,
        key: "off_topic",
        family: "off_topic",
        lowers: &[(Ca, 3), (Rpc, 1)],
        phrases: &[
            "For your broken ankle, rest the foot.",
            "For your toothache, see a dentist soon.",
        ],
    },
    Rule {
        defect: Defect::Aside,
        key: "aside",
        family: "off_topic",
        lowers: &[(Ca, 4), (Rpc, 3)],
        phrases: &["By the way, drink less coffee.", "By the way, sun cream is useful."],
    },
];

impl Defect {
    /// Returns the rule of this defect.
    pub fn rule(self) -> Option<&'static Rule> {
        RULES.iter().find(|rule| rule.defect == self)
    }

    /// Returns the name in `meta`.
    pub fn key(self) -> &'static str {
        self.rule().map_or("", |rule| rule.key)
    }
}
