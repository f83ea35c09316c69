"""Register the lab. ptrnet imports a registered module when it uses the part."""

import ptrnet_lab.models  # noqa: F401  so that `ptrnet train` has options for them
from ptrnet import cli, labellers, models
from ptrnet.training import optimizers

for _name in ("soft", "hard", "multi", "memory"):
    models.register(f"{_name}-ptr-net", f"ptrnet_lab.models.{_name}_ptr_net:MODEL")
models.register("seq2seq", "ptrnet_lab.models.seq2seq:MODEL")
models.register("seq2seq-attention", "ptrnet_lab.models.seq2seq_attention:MODEL")
for _name in ("a1", "a2", "a3"):
    labellers.register(_name, f"ptrnet_lab.labellers.{_name}", task="tsp")
optimizers.register("adadelta-rmsprop", "ptrnet_lab.adadelta_rmsprop:build")
for _name in ("reproduce", "bench"):
    cli.register(_name, f"ptrnet_lab.cli.{_name}")
