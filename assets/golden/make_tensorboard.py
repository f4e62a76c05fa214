"""Writes tensorboard.events with TensorBoard's own writer: the two records that src/training/stages/metrics/tensorboard.rs is to
write for the same values.

    python -m venv venv && venv/bin/pip install tensorboard==2.21.0
    venv/bin/python make_tensorboard.py
"""

from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

values = [Summary.Value(tag="loss", simple_value=0.5), Summary.Value(tag="validation_margin", simple_value=-1.25)]
with open(Path(__file__).parent / "tensorboard.events", "wb") as file:
    writer = RecordWriter(file)
    writer.write(Event(wall_time=1.5, file_version="brain.Event:2").SerializeToString())
    writer.write(Event(wall_time=2.25, step=300, summary=Summary(value=values)).SerializeToString())
