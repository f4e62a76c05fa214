//! Ctrl-C and termination signals: the first stops the run, the second ends
//! the process.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::Context;

use crate::support::terminal::exit::{Exit, Interrupted};

/// The flag of the signal handler.
static LISTENING: OnceLock<Interrupt> = OnceLock::new();

/// A flag that a signal sets. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Installs the signal handler of a command that works in batches.
    pub fn listen() -> anyhow::Result<Self> {
        Self::listen_with_note("stopping after the current batch")
    }

    /// Installs the signal handler, at the first call in a process. All values share one flag. The
    /// first signal prints `note`.
    pub fn listen_with_note(note: &'static str) -> anyhow::Result<Self> {
        if let Some(interrupt) = LISTENING.get() {
            return Ok(interrupt.clone());
        }
        let interrupt = Self::default();
        let flag = Arc::clone(&interrupt.0);
        ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::SeqCst) {
                std::process::exit(i32::from(Exit::Interrupted.code()));
            }
            let text = format!("{note}; press Ctrl-C again to stop immediately\n");
            let _ = io::stderr().write_all(text.as_bytes());
        })
        .context("cannot install the signal handler")?;
        Ok(LISTENING.get_or_init(|| interrupt).clone())
    }

    /// Sets the flag, as a signal does.
    #[cfg(test)]
    pub(crate) fn request(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Returns an error if an interrupt was requested. `note`: message about the results.
    ///
    /// # Errors
    ///
    /// [`Interrupted`].
    pub fn bail_if_requested(&self, note: &'static str) -> Result<(), Interrupted> {
        if self.is_requested() { Err(Interrupted(note)) } else { Ok(()) }
    }

    /// Returns true after the first signal.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
