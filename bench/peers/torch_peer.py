"""Measures PyTorch on one workload in one mode."""
import torch

from measure import arguments, report
from torch_models import WORKLOADS

MODES = ["default", "channels_last", "compile"]


def main():
    options = arguments([*WORKLOADS], MODES)
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    net, inputs, loss_of, optimizer, items = WORKLOADS[options.model](options.batch)
    if options.mode == "channels_last":
        net = net.to(memory_format=torch.channels_last)
        inputs = [x.to(memory_format=torch.channels_last) for x in inputs]
    if options.test:
        net.eval()
    run = torch.compile(net) if options.mode == "compile" else net

    def train():
        loss = loss_of(run(*inputs))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    def infer():
        with torch.inference_mode():
            run(*inputs)

    report(infer if options.test else train, options, items, torch.__version__)


if __name__ == "__main__":
    main()
