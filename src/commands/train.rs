//! `acem3 train`: a configuration to a panel.

use crate::cli::TrainArgs;
use crate::exit::Exit;
use crate::training::{TrainConfig, TrainPaths, train};

/// Trains, or goes on training, what the configuration describes.
pub(super) fn run(args: &TrainArgs) -> anyhow::Result<Exit> {
    let config = TrainConfig::read(&args.config)?;
    let paths = TrainPaths {
        out: args.out.clone(),
        data: args.data.clone(),
    };
    train(&config, &paths)?;
    Ok(Exit::Done)
}
