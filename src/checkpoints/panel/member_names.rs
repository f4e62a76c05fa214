//! Names of the members of a panel.

use acem3_experts::prompt::Rubric;
use anyhow::{Result, bail};

use super::prompt_config::{CONCLUSION, MEMBERS};

/// Names of the four members of a panel: the aspects of its rubric, in order, then the conclusion model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberNames([&'static str; 4]);

impl Default for MemberNames {
    fn default() -> Self {
        Self(MEMBERS)
    }
}

impl MemberNames {
    /// Returns the names of the members for a rubric.
    ///
    /// # Errors
    ///
    /// The rubric does not have three aspects.
    pub fn of_rubric(rubric: &Rubric) -> Result<Self> {
        let [first, second, third] = rubric.aspects.as_slice() else {
            bail!(
                "the rubric {} has {} aspects, expected three: a panel has three experts\n\
                 hint: join or split aspects",
                rubric.key,
                rubric.aspects.len()
            );
        };
        Ok(Self([first.key.key(), second.key.key(), third.key.key(), CONCLUSION]))
    }

    /// Returns all names.
    pub fn all(&self) -> [&'static str; 4] {
        self.0
    }

    /// Returns the name of a member; that of the conclusion model for an index beyond the experts.
    pub fn get(&self, member: usize) -> &'static str {
        self.0.get(member).copied().unwrap_or(CONCLUSION)
    }

    /// Returns the index of the member that a file or a configuration names.
    ///
    /// # Errors
    ///
    /// There is no such member.
    pub fn index(&self, name: &str) -> Result<usize> {
        let Some(index) = self.0.iter().position(|member| *member == name) else {
            bail!("unknown member {name:?}, expected one of {}", self.0.join(", "));
        };
        Ok(index)
    }
}
