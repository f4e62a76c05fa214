//! Progress and metrics of a stage: on the terminal, as JSON lines and for `TensorBoard`.

pub(crate) mod metrics_window;
pub(crate) mod metrics_writer;
pub(crate) mod progress;
pub(crate) mod tensorboard;
