//! Recipes: how the papers collected evaluations, as settings of the teacher.

use std::path::Path;

use acem3_experts::prompt::{Form, Rubric};
use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use crate::support::files::regular_file;

/// The recipes of the papers.
const BUILT_IN: [(&str, &str); 3] = [
    ("ace_m3", include_str!("../../../../assets/teachers/ace_m3.toml")),
    ("hdceval", include_str!("../../../../assets/teachers/hdceval.toml")),
    ("automedeval", include_str!("../../../../assets/teachers/automedeval.toml")),
];

/// Settings of a teacher.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    schema: u32,
    /// Name in messages.
    pub key: String,
    /// The form of judging.
    pub form: Form,
    /// A built-in rubric, or a file relative to the recipe.
    pub rubric: String,
    /// Whether the teacher sees the reference.
    pub reference: RecipeReference,
    /// True if the teacher does not see the images.
    #[serde(default)]
    pub text_only: bool,
    /// What stands at the start of the teacher's instructions, in place of the rubric's own text. The trained
    /// members do not read it.
    pub instructions: Option<String>,
}

/// Use of the reference answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecipeReference {
    /// The teacher does not see it.
    Hide,
    /// The teacher sees it.
    Show,
}

/// The rubrics of a recipe.
pub struct RecipeRubrics {
    /// What the trained members read.
    pub student: Rubric,
    /// The text of the teacher's rubric file: the same with the teacher's instructions.
    pub teacher: String,
}

impl Recipe {
    /// Reads a built-in recipe or a file.
    ///
    /// # Errors
    ///
    /// There is no such recipe, or the file is malformed.
    pub fn read(name: &str) -> Result<Self> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(key, _)| *key == name) {
            return Self::parse(text);
        }
        let path = Path::new(name);
        if !path.exists() {
            let keys = BUILT_IN.map(|(key, _)| key).join(", ");
            bail!(
                "--recipe {name}: no such file and no built-in recipe, expected {keys} or a TOML file\n\
                 hint: assets/guide/construction.md shows a recipe"
            );
        }
        let text = regular_file::read_to_string(path)
            .with_context(|| format!("--recipe {name}: the file cannot be read"))?;
        Self::parse(&text).with_context(|| {
            format!(
                "--recipe {name}: not a recipe\nhint: assets/guide/construction.md shows a recipe"
            )
        })
    }

    fn parse(text: &str) -> Result<Self> {
        let recipe: Self = toml::from_str(text)?;
        ensure!(recipe.schema == 1, "schema is {}, expected 1", recipe.schema);
        Ok(recipe)
    }

    /// Reads the rubric and adds the teacher's instructions to it. `folder`: that of the recipe.
    ///
    /// # Errors
    ///
    /// There is no such rubric, or it has instructions of its own and the recipe has others.
    pub fn rubrics(&self, folder: &Path) -> Result<RecipeRubrics> {
        let student = if let Some(rubric) = Rubric::by_key(&self.rubric)? {
            rubric
        } else {
            let path = folder.join(&self.rubric);
            let text = regular_file::read_to_string(&path)
                .with_context(|| format!("rubric {}", path.display()))?;
            Rubric::parse(&text).with_context(|| format!("rubric {}", path.display()))?
        };
        let source = student.source();
        let teacher = match &self.instructions {
            None => source.to_owned(),
            Some(text) => {
                let has_own = source.lines().any(|line| {
                    line.split('=').next().is_some_and(|name| name.trim() == "instructions")
                });
                ensure!(
                    !has_own,
                    "the rubric {} and the recipe {} both have instructions\n\
                     hint: remove one of them",
                    self.rubric,
                    self.key
                );
                // A key before the first table belongs to the top level.
                format!("instructions = {}\n{source}", toml_string(text)?)
            }
        };
        Rubric::parse(&teacher).context("the rubric with the recipe's instructions")?;
        Ok(RecipeRubrics { student, teacher })
    }
}

/// Returns a text as a TOML string. JSON strings are TOML strings.
fn toml_string(text: &str) -> Result<String> {
    Ok(serde_json::to_string(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_recipes_give_the_teacher_instructions_that_students_do_not_read() {
        for (key, _) in BUILT_IN {
            let recipe = Recipe::read(key).unwrap();
            let rubrics = recipe.rubrics(Path::new("")).unwrap();
            assert_eq!((recipe.key.as_str(), rubrics.student.key.as_str()), (key, key));
            let teacher = Rubric::parse(&rubrics.teacher).unwrap();
            assert_eq!(Some(teacher.instructions), recipe.instructions);
            assert_eq!(teacher.aspects, rubrics.student.aspects);
            assert_eq!(rubrics.student.instructions, "");
        }
    }

    #[test]
    fn unknown_recipes_are_named() {
        let error = Recipe::read("gpt").unwrap_err().to_string();
        assert!(error.contains("expected ace_m3, hdceval, automedeval"), "{error}");
        let error = Recipe::parse("schema = 2").unwrap_err().to_string();
        assert!(error.contains("missing field"), "{error}");
    }
}
