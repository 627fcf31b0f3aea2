from paddle._refuse import refuse

raise refuse("paddle.fluid.incubate.fleet.parameter_server.pslib", "paddle.distributed.fleet",
             "parameter-server training is not built yet")
