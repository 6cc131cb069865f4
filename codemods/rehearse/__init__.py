"""A virtual accelerator for a machine that has none: plain torch on the CPU, under the name of a vendor's device.

``backend.install("npu")`` makes ``torch.npu`` and the device type ``npu`` exist. Tensors on it are tensors of a
subclass that run every operator on a CPU tensor inside and answer as tensors of the device: a tensor left on the CPU,
a call that the vendor's namespace lacks, a dtype that the chip lacks and a CUDA name show up as they would there.

What a rehearsal proves is plumbing. Its limits:

- No kernel of the vendor runs. Numbers are those of torch's CPU kernels, bit for bit where these are deterministic,
  and random numbers come from the CPU's generator, so that a seed gives the CPU's numbers.
- Time means nothing, only the counts do. Everything runs in order: streams and events are stand-ins, so a missing
  synchronisation does no harm here.
- Optimizers take their plain loop where hardware takes the grouped ``foreach`` form.
- ``torch.compile`` gives the function itself; graphs (``NPUGraph`` and the like) are not rehearsed.
- Both forms of FSDP train, and show that a script's wrapping fits; what they would save of memory is not shown.
- Sparse and quantised tensors are not rehearsed.
- Only devices that plug in under torch's PrivateUse1 key can be played: npu, mlu, musa, gcu, supa.

It needs torch 2.13.
"""
