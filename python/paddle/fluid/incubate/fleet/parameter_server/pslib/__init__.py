from paddle._refuse import refuse

raise refuse("paddle.fluid.incubate.fleet.parameter_server.pslib", "fleet of paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler",
             "pslib's servers are a library of their own")
