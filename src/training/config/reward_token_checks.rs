//! Checks of reward tokens: their text, and their encoding by a tokenizer.

use acem3_experts::Aspect;
use acem3_experts::TextTokenizer;
use acem3_experts::prompt::{EvaluationFormat, FormatStep, QUESTION, ScoreWords};
use anyhow::{Context, Result, bail};

use super::reward_tokens::{RewardTokenPair, RewardTokens};
use super::train_config::TrainConfig;
use crate::checkpoints::panel::member_names::MemberNames;
use crate::training::preferences::prompt_text::IMAGE_MARKER;

impl TrainConfig {
    /// Checks the reward tokens of the members that a stage trains with them. `table`: the table of
    /// the configuration, whose entries must have an effect.
    pub(super) fn check_reward_tokens(&self, table: &RewardTokens) -> Result<()> {
        let used = self.members_with_reward_tokens();
        let names = self.member_names();
        if let Some(name) =
            names.all().into_iter().find(|n| table.own(n).is_some() && !used.contains(n))
        {
            bail!(
                "[reward_tokens]: no stage trains {name} with reward tokens\n\
                 hint: remove {name}, or use kind \"rtdpo\" or \"adto\", or `rewarded = true`"
            );
        }
        if table.has_default() && used.iter().all(|name| table.own(name).is_some()) {
            bail!(
                "[reward_tokens]: default is the pair of no member that is trained with reward tokens\n\
                 hint: remove it, or use kind \"rtdpo\" or \"adto\", or `rewarded = true`"
            );
        }
        for name in &used {
            let pair = self.reward_tokens.of(name);
            check_pair(&pair).with_context(|| format!("[reward_tokens]: {name}"))?;
        }
        self.check_sides(&used)
    }

    /// Checks that the token of good evaluations of one member is not that of bad ones of another.
    fn check_sides(&self, used: &[&str]) -> Result<()> {
        for (good, bad) in used.iter().flat_map(|good| used.iter().map(move |bad| (good, bad))) {
            let text = self.reward_tokens.of(good).good;
            if text == self.reward_tokens.of(bad).bad {
                bail!(
                    "[reward_tokens]: {text:?} is the good token of {good} and the bad one of {bad}\n\
                     hint: give each a token of its own"
                );
            }
        }
        Ok(())
    }

    /// Returns the names of the members.
    pub(crate) fn member_names(&self) -> MemberNames {
        self.stages.first().map(|stage| stage.member_names).unwrap_or_default()
    }

    /// Returns the members that a stage trains with reward tokens.
    fn members_with_reward_tokens(&self) -> Vec<&'static str> {
        let stages = || self.stages.iter().filter(|stage| stage.needs_reward_tokens());
        let is_used = |i: &usize| stages().any(|stage| stage.member_indices().contains(i));
        let names = self.member_names().all().into_iter().enumerate();
        names.filter(|(i, _)| is_used(i)).map(|(_, name)| name).collect()
    }

    /// Checks that a tokenizer can write the reward tokens that the stages use, and tells the two of
    /// a member apart.
    ///
    /// # Errors
    /// Errors name the member and the token.
    pub(crate) fn check_encoded_tokens(&self, tokenizer: &TextTokenizer) -> Result<()> {
        for name in self.members_with_reward_tokens() {
            let pair = self.reward_tokens.of(name);
            let location = || format!("[reward_tokens]: {name}");
            let encoded = pair.sides().map(|text| encode_token(text, tokenizer));
            let [good, bad] = encoded;
            let (good, bad) = (good.with_context(location)?, bad.with_context(location)?);
            if good == bad {
                bail!(
                    "[reward_tokens]: {name}: the tokenizer encodes {:?} and {:?} alike\n\
                     hint: choose texts that differ in more than case or unknown characters",
                    pair.good,
                    pair.bad
                );
            }
        }
        Ok(())
    }
}

impl RewardTokens {
    /// Checks the texts of all members, without a configuration that says which are used.
    pub(crate) fn check_texts(&self) -> Result<()> {
        for (name, pair) in self.named() {
            check_pair(pair).with_context(|| format!("[reward_tokens]: {name}"))?;
        }
        Ok(())
    }
}

/// Checks the texts of the two tokens of a member.
fn check_pair(pair: &RewardTokenPair) -> Result<()> {
    for (side, text) in ["good", "bad"].into_iter().zip(pair.sides()) {
        check_text(side, text)?;
    }
    let RewardTokenPair { good, bad } = pair;
    if good.starts_with(bad.as_str()) || bad.starts_with(good.as_str()) {
        bail!(
            "good is {good:?} and bad {bad:?}, expected two texts of which none begins with the other\n\
             hint: for example {{ good = \"[Good]\", bad = \"[Bad]\" }}"
        );
    }
    Ok(())
}

fn check_text(side: &str, text: &str) -> Result<()> {
    if text.is_empty() {
        bail!(
            "the {side} token is empty\n\
             hint: name both, for example {{ good = \"[Good]\", bad = \"[Bad]\" }}; a panel of another program \
             or version may state only the good one"
        );
    }
    if text.trim() != text || text.chars().any(char::is_control) {
        bail!(
            "{side} is {text:?}, expected one line without space around it\n\
             hint: for example \"[Good]\""
        );
    }
    let headings = format_headings();
    let is_confusable =
        |heading: &String| heading.starts_with(text) || text.contains(heading.as_str());
    let heading = headings.iter().find(|heading| is_confusable(heading));
    if let Some(heading) = heading {
        bail!(
            "{side} is {text:?}, which reads as {heading:?} in a prompt or an evaluation\n\
             hint: choose another text, for example \"[Good]\""
        );
    }
    Ok(())
}

/// Returns the texts that structure prompts and evaluations.
fn format_headings() -> Vec<String> {
    let formats = Aspect::ALL.map(EvaluationFormat::for_aspect).into_iter().chain([
        EvaluationFormat::for_conclusion(),
        EvaluationFormat::for_final_scores(1, ScoreWords::DEFAULT),
        EvaluationFormat::for_correctness(),
    ]);
    let mut headings: Vec<String> = [IMAGE_MARKER, QUESTION, "###"].map(str::to_owned).to_vec();
    for format in formats {
        for step in format.steps() {
            if let FormatStep::Literal(text) = step {
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                headings.extend(lines.map(str::to_owned));
            }
        }
    }
    headings
}

/// Returns the tokens of a reward token.
fn encode_token(text: &str, tokenizer: &TextTokenizer) -> Result<Vec<u32>> {
    let tokens = tokenizer.encode_trusted(text)?;
    let special = tokens.iter().filter(|token| tokenizer.is_special(**token)).count();
    // One special token is fine, such as a reserved one of Llama 3, or `[Good]` in a tokenizer that
    // acem3 trained.
    let is_own_token = tokens.len() == 1 && special == 1;
    let is_start = tokens.iter().any(|token| tokenizer.bos_tokens().contains(token));
    if is_start || (special > 0 && !is_own_token) {
        bail!(
            "{text:?} contains a special token of the tokenizer\n\
             hint: choose ordinary text, or one special token without another function"
        );
    }
    let decoded = if is_own_token {
        tokens.iter().filter_map(|token| tokenizer.token_text(*token)).collect()
    } else {
        tokenizer.decode(&tokens)?
    };
    // A tokenizer of acem3 writes ordinary text in lower case.
    let letters = |text: &str| text.to_lowercase().replace(char::is_whitespace, "");
    if letters(&decoded) != letters(text) {
        bail!(
            "the tokenizer cannot write {text:?}: it becomes {decoded:?}\n\
             hint: choose a text of letters and brackets"
        );
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(good: &str, bad: &str) -> String {
        let pair = RewardTokenPair { good: good.to_owned(), bad: bad.to_owned() };
        check_pair(&pair).map_or_else(|error| format!("{error:#}"), |()| "fine".to_owned())
    }

    #[test]
    fn unsuitable_texts_are_rejected() {
        for (good, bad) in [("[Good]", "[Bad]"), ("<|reserved_1|>", "<|reserved_2|>")] {
            assert_eq!(check(good, bad), "fine");
        }
        for (good, bad, problem) in [
            ("", "[Bad]", "the good token is empty"),
            ("[Good]", "", "the bad token is empty"),
            ("[Good]", "[Good]", "none begins with the other"),
            ("[Good", "[Good]", "none begins with the other"),
            ("[Good]\n", "[Bad]", "one line without space"),
            (" [Good]", "[Bad]", "one line without space"),
            ("Response 1:", "[Bad]", "reads as \"Response 1:\""),
            ("Res", "[Bad]", "reads as \"Response 1:\""),
            ("[Good]", "my Analysis:", "reads as \"Analysis:\""),
            ("<image>", "[Bad]", "reads as \"<image>\""),
            ("[Question]", "[Bad]", "reads as \"[Question]\""),
        ] {
            let error = check(good, bad);
            assert!(error.contains(problem) && error.contains("hint: "), "{good} {bad}: {error}");
        }
    }

    #[test]
    fn encoding_must_keep_the_text() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/mini/tokenizer.json");
        let tokenizer = TextTokenizer::parse(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!(encode_token("[Good]", &tokenizer).unwrap().len(), 1);
        assert!(encode_token("[Good EXP]", &tokenizer).unwrap().len() > 1);
        let error = encode_token("so [Good]", &tokenizer).unwrap_err().to_string();
        assert!(error.contains("contains a special token"), "{error}");
    }
}
