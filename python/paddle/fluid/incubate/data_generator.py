"""Under the name of 1.x."""
from paddle.distributed.fleet.data_generator import (DataGenerator, MultiSlotDataGenerator,  # noqa: F401
                                                     MultiSlotStringDataGenerator)
