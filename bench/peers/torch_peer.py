"""Measures PyTorch on one workload in one mode."""
import torch

from measure import arguments, report
from torch_models import WORKLOADS

MODES = ["default", "channels_last", "compile"]
FLAGS = ["autocast", "checkpoint"]  # values in bf16; layers that compute again what backward needs


def prepare(options, seed=1):
    """Network, inputs, loss, optimizer and items per step, in the asked mode but for compilation."""
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(seed)
    net, inputs, loss_of, optimizer, items = WORKLOADS[options.model](options.batch)
    if options.checkpoint:
        net.checkpoint = True
    if options.mode == "channels_last":
        net = net.to(memory_format=torch.channels_last)
        inputs = [x.to(memory_format=torch.channels_last) for x in inputs]
    return net, inputs, loss_of, optimizer, items


def training(net, inputs, loss_of, optimizer, options):
    """A function that makes one step."""
    run = torch.compile(net) if options.mode == "compile" else net

    def train():
        with torch.autocast("cpu", torch.bfloat16, enabled=options.autocast):
            loss = loss_of(run(*inputs))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return train


def inference(net, inputs, options):
    net.eval()
    run = torch.compile(net) if options.mode == "compile" else net

    def infer():
        with torch.inference_mode():
            run(*inputs)

    return infer


def main():
    options = arguments([*WORKLOADS], MODES, FLAGS)
    net, inputs, loss_of, optimizer, items = prepare(options)
    step = inference(net, inputs, options) if options.test else training(net, inputs, loss_of, optimizer, options)
    report(step, options, items, torch.__version__)


if __name__ == "__main__":
    main()
