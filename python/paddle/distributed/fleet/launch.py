"""python -m paddle.distributed.fleet.launch ... = fleetrun ..., with this interpreter."""
from paddle.distributed.launch import launch

if __name__ == "__main__":
    launch()
