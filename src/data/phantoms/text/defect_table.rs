//! Table of defects: the phrases that show each defect, and the scores it lowers.

use acem3_experts::Criterion;

use super::rules::{Defect, Rule};

// Abbreviations of ACE-M³.
const AMC: Criterion = Criterion::ADDRESSING_MULTIPLE_CONCERNS;
const CA: Criterion = Criterion::CONTEXT_AWARENESS;
const CR: Criterion = Criterion::CLARITY_OF_RESPONSE;
const EI: Criterion = Criterion::EXPRESSION_INTEGRITY;
const FA: Criterion = Criterion::FACTUAL_ACCURACY;
const HU: Criterion = Criterion::HANDLING_UNCERTAINTY;
const LA: Criterion = Criterion::LANGUAGE_APPROPRIATENESS;
const RPC: Criterion = Criterion::RELEVANCE_TO_CONDITION;
const TE: Criterion = Criterion::TONE_AND_EMPATHY;
const UI: Criterion = Criterion::UP_TO_DATE_INFORMATION;

/// Every defect, grouped by family.
pub const RULES: &[Rule] = &[
    Rule {
        defect: Defect::Outdated,
        key: "outdated",
        family: "outdated",
        lowers: &[(UI, 1)],
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
        lowers: &[(UI, 3)],
        phrases: &["The skiagraph shows it so.", "Your humours may be out of balance."],
    },
    Rule {
        defect: Defect::Certain,
        key: "certain",
        family: "overconfident",
        lowers: &[(HU, 1)],
        phrases: &[
            "This is absolutely certain, no check is ever needed.",
            "There is no doubt at all and never will be.",
        ],
    },
    Rule {
        defect: Defect::TooSure,
        key: "too_sure",
        family: "overconfident",
        lowers: &[(HU, 3)],
        phrases: &["This is definitely so.", "I am quite sure of it."],
    },
    Rule {
        defect: Defect::Vague,
        key: "vague",
        family: "vague",
        lowers: &[(HU, 2)],
        phrases: &["Or perhaps not, who knows.", "It may be so or it may be otherwise."],
    },
    Rule {
        defect: Defect::Evasive,
        key: "evasive",
        family: "evasive",
        lowers: &[(FA, 0), (HU, 2), (AMC, 0)],
        phrases: &["I cannot say anything about that.", "That is hard to tell from here."],
    },
    Rule {
        defect: Defect::Muddled,
        key: "muddled",
        family: "muddled",
        lowers: &[(CR, 1)],
        phrases: &[
            "Well, as before, or after, or neither, that is, so to say, this:",
            "Which of what, when it was not, then again, therefore:",
        ],
    },
    Rule {
        defect: Defect::Winding,
        key: "winding",
        family: "muddled",
        lowers: &[(CR, 3)],
        phrases: &["To put it one way or another:", "Coming to the point by a detour:"],
    },
    Rule {
        defect: Defect::Jargon,
        key: "jargon",
        family: "jargon",
        lowers: &[(LA, 1)],
        phrases: &["Cf. SOL, NOS, sine DDx, r/o mets.", "Foci s/p ROI, HU n/a, cave PVE."],
    },
    Rule {
        defect: Defect::Slang,
        key: "slang",
        family: "jargon",
        lowers: &[(LA, 3)],
        phrases: &["Yeah, that's kinda it.", "No biggie, dude."],
    },
    Rule {
        defect: Defect::Insult,
        key: "insult",
        family: "rude",
        lowers: &[(TE, 0)],
        phrases: &["You are an idiot.", "Only a fool like you would ask."],
    },
    Rule {
        defect: Defect::Rude,
        key: "rude",
        family: "rude",
        lowers: &[(TE, 1)],
        phrases: &["Stop wasting my time.", "What a stupid question."],
    },
    Rule {
        defect: Defect::Curt,
        key: "curt",
        family: "curt",
        lowers: &[(TE, 3)],
        phrases: &["That is all.", "Next question."],
    },
    Rule {
        defect: Defect::Truncated,
        key: "truncated",
        family: "truncated",
        lowers: &[(EI, 2)],
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
        lowers: &[(CR, 3), (EI, 1)],
        phrases: &[
            "please show this result to your doctor.",
            "another image should follow next month.",
        ],
    },
    Rule {
        defect: Defect::Bare,
        key: "bare",
        family: "bare",
        lowers: &[(CR, 4), (TE, 4), (EI, 4)],
        phrases: &[],
    },
    Rule {
        defect: Defect::Generic,
        key: "generic",
        family: "generic",
        lowers: &[(CA, 1)],
        phrases: &[
            "This is from a textbook, not from your image.",
            "I did not look at the image, most are like that.",
        ],
    },
    Rule {
        defect: Defect::OtherPicture,
        key: "other_picture",
        family: "other_picture",
        lowers: &[(CA, 2)],
        phrases: &["The ultrasound video shows it well.", "The photograph of the skin shows it."],
    },
    Rule {
        defect: Defect::OffTopic,
        key: "off_topic",
        family: "off_topic",
        lowers: &[(CA, 3), (RPC, 1)],
        phrases: &[
            "For your broken ankle, rest the foot.",
            "For your toothache, see a dentist soon.",
        ],
    },
    Rule {
        defect: Defect::Aside,
        key: "aside",
        family: "off_topic",
        lowers: &[(CA, 4), (RPC, 3)],
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
