"""Measures PaddlePaddle on one workload, as a static program."""
import paddle

from measure import arguments, report
from paddle_models import WORKLOADS


def main():
    options = arguments([*WORKLOADS], ["static"])
    if options.test:
        raise SystemExit("paddle_peer: inference is not written")
    paddle.enable_static()
    paddle.seed(1)
    feed, loss, optimizer, items = WORKLOADS[options.model](options.batch)
    optimizer.minimize(loss)
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(paddle.static.default_startup_program())
    main_program = paddle.static.default_main_program()

    def train():
        return float(executor.run(main_program, feed=feed, fetch_list=[loss])[0])

    report(train, options, items, paddle.__version__)


if __name__ == "__main__":
    main()
