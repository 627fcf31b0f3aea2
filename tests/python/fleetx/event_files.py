"""What TensorBoard reads."""
import struct


def scalars(folder):
    """[(tag, step, value)] of the only events file in a folder."""
    path, = folder.glob("events.out.tfevents.*")
    data, found = path.read_bytes(), []
    while data:
        length, = struct.unpack("<Q", data[:8])
        event, data = data[12:12 + length], data[16 + length:]
        if event[9:10] != b"\x10":  # the first one tells the version
            continue
        step, at = 0, 10
        for shift in range(0, 63, 7):
            step, at = step | (event[at] & 127) << shift, at + 1
            if event[at - 1] < 128:
                break
        value = event[at + 4:]  # summary, then value, whose lengths are below 128
        found.append((value[2:2 + value[1]].decode(), step, struct.unpack("<f", value[-4:])[0]))
    return found
