"""The peer of examples/hello_fleet.cc: joins the group, adds up one number per worker, ends."""
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(total)
n = dist.get_world_size()
assert total.item() == n * (n + 1) / 2
dist.destroy_process_group()
