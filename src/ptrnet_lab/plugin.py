"""Register the lab. ptrnet imports a registered module when it uses the part."""

import ptrnet_lab.models  # noqa: F401  so that `ptrnet train` has options for them
from ptrnet import cli, labellers, models
from ptrnet.training import optimizers

for _name, _class in {
    "soft-ptr-net": "free_running:SoftPtrNet",
    "hard-ptr-net": "free_running:HardPtrNet",
    "multi-ptr-net": "free_running:MultiPtrNet",
    "memory-ptr-net": "memory_ptr_net:MemoryPtrNet",
    "seq2seq": "seq2seq:Seq2Seq",
    "seq2seq-attention": "seq2seq:Seq2SeqAttention",
}.items():
    models.register(_name, f"ptrnet_lab.models.{_class}")
for _name in ("a1", "a2", "a3"):
    labellers.register(_name, f"ptrnet_lab.labellers.{_name}", task="tsp")
optimizers.register("adadelta-rmsprop", "ptrnet_lab.adadelta_rmsprop:build")
for _name in ("reproduce", "bench"):
    cli.register(_name, f"ptrnet_lab.cli.{_name}")
