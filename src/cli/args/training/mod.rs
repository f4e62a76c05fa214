//! Arguments of the commands that train.

mod encoders;
mod introspect;
mod train;

pub use encoders::EncodersArgs;
pub use introspect::IntrospectArgs;
pub use train::{TrainAblateArgs, TrainArgs, TrainCommand, TrainEvalArgs, TrainRunArgs};
