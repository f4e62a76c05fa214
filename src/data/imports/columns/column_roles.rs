//! Roles of columns, as in `--columns id=qid,question=prompt,answer:MODEL=text`.

use std::fmt;
use std::str::FromStr;

/// Role of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnRole {
    /// Id of the case.
    Id,
    /// The image: a path, base64 text, a data URL or bytes.
    Image,
    /// The question.
    Question,
    /// The reference answer.
    Reference,
    /// Name of the model that wrote the answer, in a table with one answer per row.
    Model,
    /// The answer of a model; `None` if the model is named by another column or by the file.
    Answer(Option<String>),
}

/// A column with its role: `ROLE=COLUMN`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnEntry {
    /// The role.
    pub role: ColumnRole,
    /// Name of the column.
    pub column: String,
}

/// An answer column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerColumn {
    /// The model, if the role names it.
    pub model: Option<String>,
    /// Name of the column.
    pub column: String,
}

/// The columns of a table by role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnRoles {
    /// Id of the case.
    pub id: Option<String>,
    /// The image.
    pub image: Option<String>,
    /// The question.
    pub question: Option<String>,
    /// The reference answer.
    pub reference: Option<String>,
    /// Name of the model.
    pub model: Option<String>,
    /// The answers.
    pub answers: Vec<AnswerColumn>,
}

impl FromStr for ColumnEntry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected id=COLUMN, image=COLUMN, question=COLUMN, reference=COLUMN, \
                        model=COLUMN, answer=COLUMN or answer:MODEL=COLUMN";
        let (role, column) = text.split_once('=').ok_or(expected)?;
        let role = match role.trim() {
            "id" => ColumnRole::Id,
            "image" => ColumnRole::Image,
            "question" => ColumnRole::Question,
            "reference" => ColumnRole::Reference,
            "model" => ColumnRole::Model,
            "answer" => ColumnRole::Answer(None),
            other => match other.strip_prefix("answer:").map(str::trim) {
                Some(model) if !model.is_empty() => ColumnRole::Answer(Some(model.to_owned())),
                _ => return Err(expected.to_owned()),
            },
        };
        let column = column.trim().to_owned();
        if column.is_empty() {
            return Err(expected.to_owned());
        }
        Ok(Self { role, column })
    }
}

impl ColumnRoles {
    /// Combines entries; `None` if there are none. The last column of a role counts.
    pub fn from_entries(entries: &[ColumnEntry]) -> Option<Self> {
        if entries.is_empty() {
            return None;
        }
        let mut roles = Self::default();
        for ColumnEntry { role, column } in entries {
            let column = column.clone();
            match role {
                ColumnRole::Id => roles.id = Some(column),
                ColumnRole::Image => roles.image = Some(column),
                ColumnRole::Question => roles.question = Some(column),
                ColumnRole::Reference => roles.reference = Some(column),
                ColumnRole::Model => roles.model = Some(column),
                ColumnRole::Answer(model) => {
                    roles.answers.push(AnswerColumn { model: model.clone(), column });
                }
            }
        }
        Some(roles)
    }

    /// Returns the columns with a role.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        let single = [&self.id, &self.image, &self.question, &self.reference, &self.model];
        let single = single.into_iter().flatten().map(String::as_str);
        single.chain(self.answers.iter().map(|answer| answer.column.as_str()))
    }
}

impl fmt::Display for ColumnRoles {
    /// Writes the roles as the value of `--columns`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let single = [
            ("id", &self.id),
            ("image", &self.image),
            ("question", &self.question),
            ("reference", &self.reference),
            ("model", &self.model),
        ];
        let mut separator = "";
        for (role, column) in single {
            if let Some(column) = column {
                write!(f, "{separator}{role}={column}")?;
                separator = ",";
            }
        }
        for AnswerColumn { model, column } in &self.answers {
            let model = model.as_ref().map(|model| format!(":{model}")).unwrap_or_default();
            write!(f, "{separator}answer{model}={column}")?;
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_parsed_and_written_alike() {
        let text = "id=qid,image=img,question=Prompt,model=who,answer:gpt-4=a b,answer=c";
        let entries: Vec<ColumnEntry> = text.split(',').map(|e| e.parse().unwrap()).collect();
        let roles = ColumnRoles::from_entries(&entries).unwrap();
        assert_eq!(roles.to_string(), text);
        assert_eq!(roles.answers[0].model.as_deref(), Some("gpt-4"));
        assert_eq!(ColumnRoles::from_entries(&[]), None);
        for wrong in ["id", "key=a", "answer:=a", "id="] {
            assert!(wrong.parse::<ColumnEntry>().unwrap_err().contains("answer:MODEL=COLUMN"));
        }
    }
}
