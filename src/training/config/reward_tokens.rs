//! Reward tokens of the members: the table `[reward_tokens]`.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::checkpoints::panel::prompt_config::MEMBERS;

/// Tokens of a member whose pair no configuration or panel states (ACE-M³ §3.4).
const BUILT_IN: [&str; 2] = ["[Good]", "[Bad]"];

/// Reward tokens of a member (`HDCEval` §3.3: one pair for each aspect).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewardTokenPair {
    /// Token of a chosen evaluation. Judging forces it.
    pub good: String,
    /// Token of a rejected evaluation; empty if a panel does not state it.
    pub bad: String,
}

impl RewardTokenPair {
    /// Returns the token of the chosen and of the rejected evaluation.
    pub(crate) fn sides(&self) -> [&str; 2] {
        [&self.good, &self.bad]
    }
}

impl Default for RewardTokenPair {
    fn default() -> Self {
        let [good, bad] = BUILT_IN.map(str::to_owned);
        Self { good, bad }
    }
}

/// Reward tokens of the four members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "RewardTokenTable", into = "RewardTokenTable")]
pub struct RewardTokens([RewardTokenPair; MEMBERS.len()]);

impl RewardTokens {
    /// Returns the tokens of a panel, whose members have these tokens of chosen and of rejected
    /// evaluations. A member without tokens has the built-in ones.
    pub(crate) fn of_panel(good: &[String], bad: &[String]) -> Self {
        let text = |texts: &[String], i: usize| texts.get(i).cloned().unwrap_or_default();
        Self(std::array::from_fn(|i| {
            let (good, bad) = (text(good, i), text(bad, i));
            let built_in = RewardTokenPair::default();
            match (good.is_empty(), bad.is_empty()) {
                (true, _) => built_in,
                // Panels of earlier versions do not state the token of rejected evaluations.
                (false, true) if good == built_in.good => built_in,
                (false, _) => RewardTokenPair { good, bad },
            }
        }))
    }

    /// Returns the tokens of a member by its index; the built-in ones for an unknown member.
    pub(crate) fn member(&self, member: usize) -> RewardTokenPair {
        self.0.get(member).cloned().unwrap_or_default()
    }

    /// Returns the tokens of the member that an evaluation is for; `None` if the evaluation is for
    /// all members and their tokens differ.
    pub(crate) fn of_evaluation(&self, member: Option<usize>) -> Option<RewardTokenPair> {
        let is_equal = self.0.windows(2).all(|pair| pair[0] == pair[1]);
        match member {
            Some(member) => Some(self.member(member)),
            None => is_equal.then(|| self.member(0)),
        }
    }

    /// Returns the token of chosen evaluations of each member.
    pub(crate) fn good(&self) -> [String; MEMBERS.len()] {
        self.0.each_ref().map(|pair| pair.good.clone())
    }

    /// Returns all tokens, each once.
    pub(crate) fn texts(&self) -> Vec<String> {
        let mut texts: Vec<String> =
            self.0.iter().flat_map(RewardTokenPair::sides).map(str::to_owned).collect();
        texts.retain(|text| !text.is_empty());
        texts.sort();
        texts.dedup();
        texts
    }

    /// Returns all tokens and the built-in ones, which a file may have instead.
    pub(crate) fn known_texts(&self) -> Vec<String> {
        let mut texts = self.texts();
        let missing = BUILT_IN.into_iter().filter(|text| !texts.iter().any(|t| t == text));
        let missing: Vec<String> = missing.map(str::to_owned).collect();
        texts.extend(missing);
        texts
    }

    /// Returns true if all members have the built-in tokens.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Lists the tokens of each member, for users.
    pub fn describe(&self) -> String {
        let pairs = MEMBERS.iter().zip(&self.0);
        let pairs = pairs.map(|(name, pair)| format!("{name} {} {}", pair.good, pair.bad));
        pairs.collect::<Vec<_>>().join(", ")
    }
}

/// The table in a configuration: a pair for each member, or for all others.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RewardTokenTable {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default: Option<RewardTokenPair>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expression: Option<RewardTokenPair>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    medical_knowledge: Option<RewardTokenPair>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    patient_relevance: Option<RewardTokenPair>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    conclusion: Option<RewardTokenPair>,
}

impl RewardTokenTable {
    /// Returns the table of a configuration, empty if it has none.
    ///
    /// # Errors
    /// If an entry is not a pair, or is for no member.
    pub(crate) fn of_config(config: &toml::Table) -> Result<Self> {
        let Some(table) = config.get("reward_tokens") else {
            return Ok(Self::default());
        };
        table.clone().try_into().context(
            "[reward_tokens]: expected a pair for each member\n\
             hint: for example `expression = { good = \"[Good EXP]\", bad = \"[Bad EXP]\" }`; the keys are \
             the members and `default`",
        )
    }

    /// Returns the pair of each member that the table names.
    pub(crate) fn members(&self) -> [Option<&RewardTokenPair>; MEMBERS.len()] {
        [
            self.expression.as_ref(),
            self.medical_knowledge.as_ref(),
            self.patient_relevance.as_ref(),
            self.conclusion.as_ref(),
        ]
    }

    /// Returns true if the table has a pair for the members that it does not name.
    pub(crate) fn has_default(&self) -> bool {
        self.default.is_some()
    }

    /// Returns the pair of each member: its own, else `default`, else that of `base`.
    pub(crate) fn resolve(&self, base: &RewardTokens) -> RewardTokens {
        let members = self.members();
        RewardTokens(std::array::from_fn(|i| {
            let named = members[i].or(self.default.as_ref());
            named.cloned().unwrap_or_else(|| base.member(i))
        }))
    }
}

impl From<RewardTokenTable> for RewardTokens {
    fn from(table: RewardTokenTable) -> Self {
        table.resolve(&Self::default())
    }
}

impl From<RewardTokens> for RewardTokenTable {
    fn from(tokens: RewardTokens) -> Self {
        let [expression, medical_knowledge, patient_relevance, conclusion] =
            tokens.0.map(|pair| Some(pair).filter(|pair| *pair != RewardTokenPair::default()));
        Self { default: None, expression, medical_knowledge, patient_relevance, conclusion }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> RewardTokenTable {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn members_without_a_pair_get_the_default() {
        let tokens: RewardTokens = table(
            "default = { good = \"[+]\", bad = \"[-]\" }\n\
             expression = { good = \"[Good EXP]\", bad = \"[Bad EXP]\" }",
        )
        .into();
        assert_eq!(tokens.good(), ["[Good EXP]", "[+]", "[+]", "[+]"]);
        let text = toml::to_string(&tokens).unwrap();
        assert_eq!(toml::from_str::<RewardTokens>(&text).unwrap(), tokens);
        assert_eq!(RewardTokens::from(table("")), RewardTokens::default());
        assert!(toml::from_str::<RewardTokens>("fluency = { good = \"a\", bad = \"b\" }").is_err());
    }

    #[test]
    fn evaluation_for_all_members_needs_equal_tokens() {
        let tokens = RewardTokens::default();
        assert_eq!(tokens.of_evaluation(None), Some(RewardTokenPair::default()));
        let tokens: RewardTokens = table("conclusion = { good = \"[A]\", bad = \"[B]\" }").into();
        assert_eq!(tokens.of_evaluation(None), None);
        assert_eq!(tokens.of_evaluation(Some(3)).unwrap().sides(), ["[A]", "[B]"]);
    }

    #[test]
    fn panel_of_an_earlier_version_has_the_built_in_pair() {
        let good = ["[Good]", "", "[Great]", "[C]"].map(str::to_owned);
        let bad = ["", "", "", "[D]"].map(str::to_owned);
        let tokens = RewardTokens::of_panel(&good, &bad);
        let sides = [0, 1, 2, 3].map(|i| tokens.member(i).bad);
        assert_eq!(sides, ["[Bad]", "[Bad]", "", "[D]"]);
    }
}
