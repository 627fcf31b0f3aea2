"""bfloat16 as NumPy holds it: in uint16, the upper half of a float32."""
import numpy

__all__ = ["convert_float_to_uint16", "convert_uint16_to_float"]


def convert_float_to_uint16(in_list, data_format="NCHW"):
    """The nearest bfloat16 values. Ties go to the even one. data_format="NHWC" also moves the channels to the end."""
    values = numpy.ascontiguousarray(in_list, "float32")
    if data_format == "NHWC":
        values = numpy.ascontiguousarray(numpy.moveaxis(values, 1, -1))
    elif data_format != "NCHW":
        raise ValueError(f"convert_float_to_uint16: data_format must be 'NCHW' or 'NHWC', not {data_format!r}")
    bits = values.view("uint32").astype("uint64")
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("uint16")
    return numpy.where(numpy.isnan(values), numpy.uint16(0x7FC0), rounded).astype("uint16")


def convert_uint16_to_float(in_list):
    """float32 values; what is float32 already (values that are fetched here are) stays as it is."""
    values = numpy.asarray(in_list)
    if values.dtype != numpy.uint16:
        return values.astype("float32", copy=False)
    return (values.astype("uint32") << 16).view("float32")
