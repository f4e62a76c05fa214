//! Reward tokens of the members: the table `[reward_tokens]`.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::checkpoints::panel::member_names::MemberNames;

/// Reward tokens of a member if neither the configuration nor the panel names them (ACE-M³ §3.4).
const BUILT_IN: [&str; 2] = ["[Good]", "[Bad]"];
/// Key of the pair of the members that a table does not name.
const DEFAULT: &str = "default";
/// Number of members of a panel.
const MEMBER_COUNT: usize = 4;

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

/// Reward tokens of the members, by name: the table of a configuration. A member that it does not name
/// has the pair `default`, else the built-in one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RewardTokens(BTreeMap<String, RewardTokenPair>);

impl RewardTokens {
    /// Returns the table of a configuration, empty if it has none.
    ///
    /// # Errors
    /// If an entry is not a pair.
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

    /// Returns the tokens of a panel, whose members have these tokens of chosen and of rejected
    /// evaluations. A member without tokens has the built-in ones.
    pub(crate) fn of_panel(names: MemberNames, good: &[String], bad: &[String]) -> Self {
        let text = |texts: &[String], i: usize| texts.get(i).cloned().unwrap_or_default();
        let pairs = names.all().into_iter().enumerate().filter_map(|(i, name)| {
            let pair = RewardTokenPair { good: text(good, i), bad: text(bad, i) };
            // Panels of earlier versions do not state the token of rejected evaluations.
            let is_built_in =
                pair.good.is_empty() || (pair.bad.is_empty() && pair.good == BUILT_IN[0]);
            (!is_built_in).then(|| (name.to_owned(), pair))
        });
        Self(pairs.collect())
    }

    /// Returns the pair that the table has for a member itself.
    pub(crate) fn own(&self, member: &str) -> Option<&RewardTokenPair> {
        self.0.get(member)
    }

    /// Returns true if the table has a pair for the members that it does not name.
    pub(crate) fn has_default(&self) -> bool {
        self.0.contains_key(DEFAULT)
    }

    /// Returns the tokens of a member.
    pub(crate) fn of(&self, member: &str) -> RewardTokenPair {
        let pair = self.0.get(member).or_else(|| self.0.get(DEFAULT));
        pair.cloned().unwrap_or_default()
    }

    /// Returns the pair of each member: its own, else `default`, else that of `base`.
    ///
    /// # Errors
    /// If an entry is for no member.
    pub(crate) fn resolve(&self, names: MemberNames, base: &Self) -> Result<Self> {
        for name in self.0.keys().filter(|name| *name != DEFAULT) {
            names.index(name).with_context(|| {
                format!("[reward_tokens]: {name}\nhint: the keys are the members and `default`")
            })?;
        }
        let pair = |name: &str| {
            let own = self.0.get(name).or_else(|| self.0.get(DEFAULT)).cloned();
            own.unwrap_or_else(|| base.of(name))
        };
        let pairs = names.all().into_iter().map(|name| (name.to_owned(), pair(name)));
        Ok(Self(pairs.filter(|(_, pair)| *pair != RewardTokenPair::default()).collect()))
    }

    /// Returns each pair of a member once.
    fn pairs(&self) -> Vec<RewardTokenPair> {
        let mut pairs: Vec<RewardTokenPair> = self.0.values().cloned().collect();
        let named = self.0.keys().filter(|name| *name != DEFAULT).count();
        if !self.has_default() && named < MEMBER_COUNT {
            pairs.push(RewardTokenPair::default());
        }
        pairs.sort_by(|a, b| a.sides().cmp(&b.sides()));
        pairs.dedup();
        pairs
    }

    /// Returns the tokens of the member that an evaluation is for; `None` if the evaluation is for
    /// all members and their tokens differ.
    pub(crate) fn of_evaluation(&self, member: Option<&str>) -> Option<RewardTokenPair> {
        match (member, self.pairs().as_slice()) {
            (Some(member), _) => Some(self.of(member)),
            (None, [only]) => Some(only.clone()),
            (None, _) => None,
        }
    }

    /// Returns the token of chosen evaluations of each member.
    pub(crate) fn good(&self, names: MemberNames) -> [String; 4] {
        names.all().map(|name| self.of(name).good)
    }

    /// Returns all tokens, each once.
    pub(crate) fn texts(&self) -> Vec<String> {
        let pairs = self.pairs();
        let mut texts: Vec<String> =
            pairs.iter().flat_map(RewardTokenPair::sides).map(str::to_owned).collect();
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

    /// Returns the tokens of chosen evaluations, each once.
    pub(crate) fn good_texts(&self) -> Vec<String> {
        let mut texts: Vec<String> = self.pairs().into_iter().map(|pair| pair.good).collect();
        texts.dedup();
        texts
    }

    /// Returns true if all members have the built-in tokens.
    pub(crate) fn is_default(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the pairs that the table names, with the name of the member.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&String, &RewardTokenPair)> {
        self.0.iter()
    }

    /// Lists the tokens of each member, for users.
    pub fn describe(&self) -> String {
        let text =
            |name: &str, pair: &RewardTokenPair| format!("{name} {} {}", pair.good, pair.bad);
        let named = self.0.iter().map(|(name, pair)| text(name, pair));
        let named: Vec<String> = named.collect();
        let others = if named.is_empty() { "all members" } else { "other members" };
        let built_in = self.pairs().contains(&RewardTokenPair::default());
        let built_in = built_in.then(|| text(others, &RewardTokenPair::default()));
        named.into_iter().chain(built_in).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> RewardTokens {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn members_without_a_pair_get_the_default() {
        let names = MemberNames::default();
        let written = table(
            "default = { good = \"[+]\", bad = \"[-]\" }\n\
             expression = { good = \"[Good EXP]\", bad = \"[Bad EXP]\" }",
        );
        let tokens = written.resolve(names, &RewardTokens::default()).unwrap();
        for tokens in [&written, &tokens] {
            assert_eq!(tokens.good(names), ["[Good EXP]", "[+]", "[+]", "[+]"]);
        }
        let text = toml::to_string(&tokens).unwrap();
        assert_eq!(toml::from_str::<RewardTokens>(&text).unwrap(), tokens);
        assert!(table("").is_default());
        let unknown = table("fluency = { good = \"a\", bad = \"b\" }");
        let error = unknown.resolve(names, &RewardTokens::default()).unwrap_err();
        assert!(format!("{error:#}").contains("unknown member \"fluency\""), "{error:#}");
    }

    #[test]
    fn evaluation_for_all_members_needs_equal_tokens() {
        let tokens = RewardTokens::default();
        assert_eq!(tokens.of_evaluation(None), Some(RewardTokenPair::default()));
        let tokens = table("conclusion = { good = \"[A]\", bad = \"[B]\" }");
        assert_eq!(tokens.of_evaluation(None), None);
        let pair = tokens.of_evaluation(Some("conclusion")).unwrap();
        assert_eq!(pair.sides(), ["[A]", "[B]"]);
    }

    #[test]
    fn panel_of_an_earlier_version_has_the_built_in_pair() {
        let names = MemberNames::default();
        let good = ["[Good]", "", "[Great]", "[C]"].map(str::to_owned);
        let bad = ["", "", "", "[D]"].map(str::to_owned);
        let tokens = RewardTokens::of_panel(names, &good, &bad);
        let sides = names.all().map(|name| tokens.of(name).bad);
        assert_eq!(sides, ["[Bad]", "[Bad]", "", "[D]"]);
    }
}
