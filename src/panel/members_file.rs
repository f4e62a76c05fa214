//! A small TOML file that names the four members, each a folder with a published checkpoint, or a
//! GGUF file.

use std::path::{Path, PathBuf};

use acem3_experts::prompt::{Detail, Layout};
use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::published::Source;
use super::recipe::{Asking, MEMBERS};

/// Most tokens of one analysis where the file does not say.
const ANALYSIS_TOKENS: usize = 128;

/// The file. Folders are relative to it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MembersFile {
    schema: u32,
    /// The panel's name in tables and records; the file's where absent.
    name: Option<String>,
    /// The prompt layout the members were trained with; the papers' where absent.
    layout: Option<Layout>,
    /// How much of the rubric prompts spell out; all of it where absent.
    rubric: Option<Detail>,
    /// Most tokens of one analysis.
    analysis_tokens: Option<usize>,
    /// How all members are spoken to, where they do not say it themselves.
    dialogue: Option<String>,
    /// What every member's text begins with, where they were trained with reward tokens (`"[Good]"`).
    reward_token: Option<String>,
    /// The folder of the vision tower that checkpoints name without bringing it.
    vision_tower: Option<PathBuf>,
    /// Fields of the members' `config.json` that this program does not know and that are known to
    /// change nothing.
    #[serde(default)]
    ignore_config: Vec<String>,
    members: Seats,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seats {
    expression: Seat,
    medical_knowledge: Seat,
    patient_relevance: Seat,
    conclusion: Seat,
}

/// A folder or GGUF file, or one with what is particular about it.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Seat {
    Folder(PathBuf),
    Described(Described),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    #[serde(alias = "file")]
    folder: PathBuf,
    /// Leave the eyes of the checkpoint aside.
    #[serde(default)]
    text_only: bool,
    dialogue: Option<String>,
    reward_token: Option<String>,
    vision_tower: Option<PathBuf>,
}

impl Seats {
    /// The four, in the order of [`MEMBERS`].
    fn all(&self) -> [&Seat; 4] {
        [
            &self.expression,
            &self.medical_knowledge,
            &self.patient_relevance,
            &self.conclusion,
        ]
    }
}

impl MembersFile {
    /// Reads and checks the file.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let name = path.display();
        let text =
            std::fs::read_to_string(path).with_context(|| format!("{name}: cannot be read"))?;
        let file: Self =
            toml::from_str(&text).with_context(|| format!("{name}: not a panel's file"))?;
        if file.schema != 1 {
            bail!("{name}: schema is {}, expected 1", file.schema);
        }
        if file.analysis_tokens == Some(0) {
            bail!("{name}: analysis_tokens is 0, expected at least 1");
        }
        Ok(file)
    }

    /// How a panel is asked where nobody says it.
    pub(super) fn default_asking(name: String) -> Asking {
        Asking {
            name,
            layout: Layout::Paper,
            rubric: Detail::Full,
            analysis_tokens: ANALYSIS_TOKENS,
            leads: Default::default(),
        }
    }

    /// How the panel is asked.
    pub(super) fn asking(&self, path: &Path) -> Asking {
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned());
        let name = self.name.clone().or(stem);
        let default = Self::default_asking(name.unwrap_or_default());
        Asking {
            layout: self.layout.unwrap_or(default.layout),
            rubric: self.rubric.unwrap_or(default.rubric),
            analysis_tokens: self.analysis_tokens.unwrap_or(default.analysis_tokens),
            leads: self.members.all().map(|seat| {
                let own = match seat {
                    Seat::Described(seat) => seat.reward_token.as_ref(),
                    Seat::Folder(_) => None,
                };
                own.or(self.reward_token.as_ref())
                    .cloned()
                    .unwrap_or_default()
            }),
            name: default.name,
        }
    }

    /// The four checkpoints, in order.
    pub(super) fn sources(&self, path: &Path) -> Result<[Source; 4]> {
        let base = path.parent().unwrap_or(Path::new(""));
        let seats = self.members.all();
        for (name, seat) in MEMBERS.iter().zip(seats) {
            let folder = base.join(seat.folder());
            if !folder.is_dir() && !Source::plain(folder.clone()).is_gguf() {
                bail!(
                    "{}: members.{name}: there is no folder and no .gguf file {}\n\
                     hint: names are relative to the file that names them",
                    path.display(),
                    folder.display()
                );
            }
        }
        Ok(seats.map(|seat| self.source(seat, base)))
    }

    fn source(&self, seat: &Seat, base: &Path) -> Source {
        let plain = Source {
            dialogue: self.dialogue.clone(),
            vision_tower: self.vision_tower.as_ref().map(|tower| base.join(tower)),
            ignore_config: self.ignore_config.clone(),
            ..Source::plain(base.join(seat.folder()))
        };
        match seat {
            Seat::Folder(_) => plain,
            Seat::Described(seat) => Source {
                text_only: seat.text_only,
                dialogue: seat.dialogue.clone().or(plain.dialogue),
                vision_tower: seat
                    .vision_tower
                    .as_ref()
                    .map(|tower| base.join(tower))
                    .or(plain.vision_tower),
                ..plain
            },
        }
    }
}

impl Seat {
    fn folder(&self) -> &Path {
        match self {
            Self::Folder(folder) => folder,
            Self::Described(seat) => &seat.folder,
        }
    }
}
