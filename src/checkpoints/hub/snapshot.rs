//! A repository at a commit, as a folder on this machine.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cache::Cache;
use super::client::Client;
use super::download::{Download, Wish};
use super::id::is_commit;
use super::tree::Tree;
use super::wanted::Unmet;
use super::{HubError, RepoRef, Settings, Wanted};
use crate::support::terminal::progress::say;

/// A hub and a cache.
#[derive(Debug)]
pub struct Hub {
    settings: Settings,
    client: Client,
    quiet: bool,
}

/// A folder with files of a repository, and where they are from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The folder.
    pub folder: PathBuf,
    /// Where it is from, for the manifest.
    pub stamp: HubStamp,
}

/// What was taken from the hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubStamp {
    /// `owner/name`.
    pub id: String,
    /// The branch, tag or commit that was asked for.
    pub revision: String,
    /// The commit it stood at.
    pub commit: String,
}

impl Hub {
    /// A hub with a cache. `quiet` takes the bar and the notes away.
    pub fn new(settings: Settings, quiet: bool) -> Result<Self, HubError> {
        Ok(Self {
            client: Client::new(&settings)?,
            settings,
            quiet,
        })
    }

    /// The folder of a repository with the files that are wanted, downloaded as far as they are
    /// missing. Where the hub is out of reach, what was downloaded before stands in.
    pub fn snapshot(&self, repo: &RepoRef, wanted: &Wanted) -> Result<Snapshot, HubError> {
        let cache = Cache::of(&self.settings, repo);
        if let Some(why) = self.settings.offline {
            let found = Self::cached(&cache, repo, wanted)?;
            return found.ok_or_else(|| HubError::NotCached {
                id: repo.id(),
                revision: repo.revision().to_owned(),
                cache: cache.root().to_owned(),
                why,
            });
        }
        let known = Some(repo.revision()).filter(|text| is_commit(text));
        let known = known.and_then(|commit| Some((commit.to_owned(), cache.tree(commit)?)));
        let (commit, tree) = match known {
            Some(known) => known,
            None => match self.ask(repo) {
                Ok(answer) => answer,
                Err(error) if error.is_absence() => {
                    return match Self::cached(&cache, repo, wanted) {
                        Ok(Some(found)) => {
                            self.tell_stand_in(&error, &found);
                            Ok(found)
                        }
                        Ok(None) | Err(_) => Err(error),
                    };
                }
                Err(error) => return Err(error),
            },
        };
        let chosen = choose(repo, wanted, &tree.names())?;
        let missing: Vec<&String> = (chosen.iter())
            .filter(|name| !cache.has(&commit, name))
            .collect();
        let noted = cache.keep_tree(&commit, &tree);
        if !missing.is_empty() {
            noted?;
            self.download(&cache, (repo, &commit), &tree, &missing)?;
        }
        let noted = cache.set_reference(repo.revision(), &commit);
        if !missing.is_empty() {
            // A cache that holds everything may be read-only.
            noted?;
        }
        Ok(snapshot(&cache, repo, commit))
    }

    /// The commit of a revision and its files, as the hub tells.
    fn ask(&self, repo: &RepoRef) -> Result<(String, Tree), HubError> {
        let answer = self.client.revision(repo)?;
        let bad = |why: String| HubError::BadAnswer {
            what: repo.id(),
            why,
        };
        let commit = answer
            .get("sha")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !is_commit(commit) {
            return Err(bad("its answer names no commit (`sha`)".to_owned()));
        }
        Ok((commit.to_owned(), Tree::of_answer(&answer).map_err(bad)?))
    }

    /// What was downloaded before, if all that is wanted was.
    fn cached(
        cache: &Cache,
        repo: &RepoRef,
        wanted: &Wanted,
    ) -> Result<Option<Snapshot>, HubError> {
        let Some(commit) = cache.commit_of(repo.revision()) else {
            return Ok(None);
        };
        let there = cache.files(&commit);
        if there.is_empty() {
            return Ok(None);
        }
        let incomplete = |file: String| HubError::Incomplete {
            id: repo.id(),
            revision: repo.revision().to_owned(),
            file,
            cache: cache.root().to_owned(),
        };
        let chosen = if let Some(tree) = cache.tree(&commit) {
            choose(repo, wanted, &tree.names())?
        } else {
            // Nobody noted what there should be; what is there must do.
            let names: Vec<&str> = there.iter().map(String::as_str).collect();
            wanted
                .choose(&names)
                .map_err(|unmet| incomplete(unmet.file))?
        };
        match chosen.into_iter().find(|name| !cache.has(&commit, name)) {
            Some(missing) => Err(incomplete(missing)),
            None => Ok(Some(snapshot(cache, repo, commit))),
        }
    }

    fn download(
        &self,
        cache: &Cache,
        (repo, commit): (&RepoRef, &str),
        tree: &Tree,
        missing: &[&String],
    ) -> Result<(), HubError> {
        cache.make()?;
        let wishes = missing
            .iter()
            .map(|file| self.wish((repo, commit), tree, file));
        let wishes: Vec<Wish> = wishes.collect::<Result<_, _>>()?;
        let bar = self.bar(wishes.iter().map(|wish| wish.size).sum());
        let wait = |file: &str| {
            let text = format!(
                "{}/{file}: another process downloads it; waiting",
                repo.id()
            );
            bar.suspend(|| self.say(&text));
        };
        let download = Download {
            client: &self.client,
            cache,
            repo,
            commit,
            bar: &bar,
            wait: &wait,
        };
        for wish in &wishes {
            bar.set_message(wish.file.clone());
            if let Err(error) = download.bring(wish) {
                bar.finish_and_clear();
                return Err(error);
            }
        }
        bar.finish_and_clear();
        // Only when all contents are there do they get their names.
        wishes
            .iter()
            .try_for_each(|wish| cache.link(commit, &wish.file, wish.hash.digits()))
    }

    /// The size and hash of a file, as the hub states them; what it states twice must agree.
    fn wish(
        &self,
        (repo, commit): (&RepoRef, &str),
        tree: &Tree,
        file: &str,
    ) -> Result<Wish, HubError> {
        let stated = self.client.stated(repo, commit, file)?;
        let listed = tree.get(file).and_then(super::tree::Entry::content);
        let bad = |why: String| HubError::BadAnswer {
            what: format!("{}/{file}", repo.id()),
            why,
        };
        if let Some(other) = stated.commit.filter(|other| other != commit) {
            return Err(bad(format!(
                "asked for commit {commit}, the hub answers for {other}"
            )));
        }
        let (listed_size, listed_hash) = listed.unzip();
        if let (Some(stated), Some(listed)) = (stated.size, listed_size)
            && stated != listed
        {
            return Err(bad(format!(
                "the hub lists {listed} bytes and states {stated}"
            )));
        }
        if let (Some(stated), Some(listed)) = (&stated.hash, &listed_hash)
            && stated != listed
        {
            let (listed, stated) = (listed.digits(), stated.digits());
            return Err(bad(format!(
                "the hub lists the hash {listed} and states {stated}"
            )));
        }
        let hash = stated.hash.or(listed_hash);
        let size = stated.size.or(listed_size);
        match (hash, size) {
            (Some(hash), Some(size)) => Ok(Wish {
                file: file.to_owned(),
                size,
                hash,
            }),
            (None, _) => Err(bad(
                "the hub states no hash of it, so it could not be checked".to_owned(),
            )),
            (_, None) => Err(bad("the hub states no size of it".to_owned())),
        }
    }

    fn bar(&self, bytes: u64) -> ProgressBar {
        let shown = !self.quiet && io::stderr().is_terminal();
        let target = if shown {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(bytes), target);
        let style = "{bar:32} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left, {msg}";
        // A template that did not parse would cost the looks only.
        match ProgressStyle::with_template(style) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }

    fn tell_stand_in(&self, error: &HubError, found: &Snapshot) {
        let error = error.to_string();
        let first = error.lines().next().unwrap_or_default();
        let HubStamp { id, commit, .. } = &found.stamp;
        self.say(&format!(
            "{first}; using {id} as downloaded before, at commit {commit}"
        ));
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            say(text);
        }
    }
}

fn choose(repo: &RepoRef, wanted: &Wanted, names: &[&str]) -> Result<Vec<String>, HubError> {
    wanted
        .choose(names)
        .map_err(|Unmet { file, hint }| HubError::NoFile {
            id: repo.id(),
            revision: repo.revision().to_owned(),
            file,
            hint,
        })
}

fn snapshot(cache: &Cache, repo: &RepoRef, commit: String) -> Snapshot {
    Snapshot {
        folder: cache.snapshot(&commit),
        stamp: HubStamp {
            id: repo.id(),
            revision: repo.revision().to_owned(),
            commit,
        },
    }
}
