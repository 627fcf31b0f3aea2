"""Files. Tensors are safetensors files, programs are protobuf: <prefix>.pdparams (what is trained), .pdopt (the rest
that lives from step to step), .pdmodel (the program), .pdiparams (of an inference model). Tables of rows by id that this
process keeps (sparse_embedding of a job without servers) are a folder .pdtables beside them."""
import json
import os
import tempfile
import warnings

import numpy

from paddle import _graph
from paddle._executor import global_scope
from paddle._graph import Program, as_list
from paddle._native import native


def _values(names, scope, what):
    """{name: array}, the values of this worker."""
    out = {}
    for name in names:
        if not scope.native.has(name):
            raise native.InvalidArgumentError(
                f"{what}: variable '{name}' has no value yet; run the startup program first. (What another worker keeps, "
                "as with strategy.sharding, is saved by fleet.save_persistables, called by all workers.)")
        out[name] = scope.native.get(name)
    return out


def _values_of_one(program, names, what):
    """{name: array} for a file that one worker writes by itself. A part of a variable is refused; of a variable that
    differs between workers the file has this worker's value, with a warning."""
    spread = [n for n in program.ir.spread_persistables() if n in set(names)]
    placement = {n: program.ir.var(n)["placement"] for n in spread}
    for name in spread:
        if placement[name].startswith("sharded"):
            raise native.InvalidArgumentError(
                f"{what}: '{name}' is {placement[name]}: this worker has a part of it only. Call fleet.save_persistables on "
                "all workers")
    differ = [n for n in spread if placement[n].startswith("per_rank")]
    if differ:
        warnings.warn(f"{what}: '{differ[0]}'{f' and {len(differ) - 1} more' if len(differ) > 1 else ''} differ between the "
                      f"workers ({placement[differ[0]]}); the file has the values of this one only, so a resumed run goes on "
                      "differently. fleet.save_persistables, called by all workers, keeps those of all", stacklevel=3)
    return _values(names, global_scope(), what)


def _make_folder(path):
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)


def _write_bytes(path, content):
    """A file that cannot be completed is removed, and the error names it."""
    left = memoryview(content)
    with open(path, "wb", buffering=0) as file:
        try:
            while left:
                left = left[file.write(left):]
        except OSError as error:
            _remove_file(path)
            raise OSError(error.errno, error.strerror, path) from error


def _remove_file(path):
    if os.path.isfile(path):  # no device
        os.remove(path)


def save_arrays(path, arrays, metadata=None):
    _make_folder(path)
    native.save_tensors(path, arrays, metadata or {})


def _program(program):
    from paddle._executor import CompiledProgram
    if program is None:
        return _graph.default_main_program()
    return program._program if isinstance(program, CompiledProgram) else program


def _is_server():
    """Of a job with parameter servers."""
    from paddle.distributed.fleet import api
    return api._roles is not None and api.roles().is_server()


def own_tables():
    from paddle.distributed.fleet import api
    return api._own_tables()


def save(program, model_path, protocol=None):
    """Writes <model_path>.pdparams, .pdopt and .pdmodel. `protocol` is one of pickle; nothing is pickled here."""
    if not os.path.basename(model_path):
        raise ValueError(f"save: model_path must end in a file name, got {model_path!r}")
    program = _program(program)
    parameters = set(program.ir.parameters()) - set(own_tables())
    values = _values_of_one(program, sorted(parameters.union(program.ir.persistables())), "save")
    save_arrays(model_path + ".pdparams", {n: v for n, v in values.items() if n in parameters})
    save_arrays(model_path + ".pdopt", {n: v for n, v in values.items() if n not in parameters})
    _write_bytes(model_path + ".pdmodel", program.ir.to_proto())
    if own_tables():
        native.fleet.save_servers(global_scope().native, os.path.abspath(model_path + ".pdtables"))


PER_RANK = "per_rank:"  # in the metadata of a file: variables that hold a value for each worker, and their rule


def load_program_state(model_path, var_list=None):
    """{name: array} of what save() wrote."""
    return _read_state(model_path, var_list)[0]


def _read_state(model_path, var_list):
    for ending in (".pdparams", ".pdopt", ".pdmodel"):
        if model_path.endswith(ending):
            model_path = model_path[:-len(ending)]
    if not os.path.exists(model_path + ".pdparams"):
        raise native.InvalidArgumentError(f"load: there is no file {model_path}.pdparams")
    state, metadata = map(dict, native.load_tensors(model_path + ".pdparams"))
    if os.path.exists(model_path + ".pdopt"):
        more, about = native.load_tensors(model_path + ".pdopt")
        state.update(more)
        metadata.update(about)
    if var_list is not None:
        names = [v if isinstance(v, str) else v.name for v in var_list]
        missing = [n for n in names if n not in state]
        if missing:
            raise native.InvalidArgumentError(f"load: {model_path}.pdparams has no variable {', '.join(missing)}")
        state = {n: state[n] for n in names}
    return state, metadata


def _add_stand_ins(program, names, state, metadata):
    """State that only jobs of several workers have is not in the files of one; what the program loads in its place is
    added (fleetx/ir/stand_in.h). Returns the names that are missing all the same."""
    missing = []
    for name in [n for n in names if n not in state]:
        other = _program(program).ir.var(name)["attrs"].get("stand_in")
        if other in state:
            state[name] = state[other]
            if PER_RANK + other in metadata:
                metadata[PER_RANK + name] = metadata[PER_RANK + other]
        elif other != "":  # "": it stays as the startup program has made it
            missing.append(name)
    return missing


def set_program_state(program, state_dict, metadata=None):
    """Puts values into the scope; those that the program does not keep are left out. `metadata` is that of the files
    they come from."""
    program, scope = _program(program), global_scope()
    kept = set(program.ir.persistables())
    unused = []
    for name, value in state_dict.items():
        if name not in kept:
            unused.append(name)
            continue
        dtype = program.ir.dtype(name)
        array = numpy.ascontiguousarray(value).astype("float32" if dtype == "bfloat16" else dtype, copy=False)
        native.set_from_whole(program.ir, scope.native, name, array, (metadata or {}).get(PER_RANK + name, ""), "load")
    if unused:
        warnings.warn(f"not used by the program: {', '.join(sorted(unused)[:5])}{' ...' if len(unused) > 5 else ''}")


def load(program, model_path, executor=None, var_list=None):
    """Reads what save() wrote into the scope. Everything that the program keeps must be in the files."""
    program = _program(program)
    state, metadata = _read_state(model_path, var_list)
    kept = program.ir.persistables()
    if var_list is None:
        missing = _add_stand_ins(program, kept, state, metadata)
        if missing:
            raise native.InvalidArgumentError(
                f"load: {model_path}.pdparams and .pdopt lack {', '.join(missing[:5])}{' ...' if len(missing) > 5 else ''}, "
                "which the program keeps from step to step; name what to load in var_list")
    set_program_state(program, {n: v for n, v in state.items() if n in set(kept)}, metadata)
    if own_tables():
        native.fleet.load_own_tables(os.path.abspath(model_path + ".pdtables"))


# ---- inference models ----
def normalize_program(program, feed_vars, fetch_vars):
    """The part of a program that computes `fetch_vars`, as for testing."""
    targets = [v.name for v in as_list(fetch_vars)]
    out = Program(_program(program).ir.clone_for_test().prune(targets))
    out.feed_names, out.fetch_names = [v.name for v in as_list(feed_vars)], targets
    return out


def serialize_program(feed_vars, fetch_vars, program=None):
    return normalize_program(program, feed_vars, fetch_vars).ir.to_proto()


def write_inference_model(model_path, params_path, feed_names, fetch_vars, program):
    if _program(program).between is not None:
        raise native.UnsupportedError("save_inference_model: the program has While, arrays or beam_search, which are no ops; "
                                      "nearest: save its parameters (save_params), and build it again")
    if _program(program).family:
        raise native.UnsupportedError("save_inference_model: the program has a loop over an unknown number of steps; nearest: "
                                      "save its parameters (save_params), and build it again")
    lengths = {v.name: [v.lengths.name, v.lengths.loose_rows] for v in fetch_vars if v.lengths is not None}
    targets = [v.name for v in fetch_vars] + sorted({name for name, _ in lengths.values()})
    pruned = Program(_program(program).ir.clone_for_test().prune(targets))
    needed = [n for n in pruned.ir.vars() if pruned.ir.var(n)["is_data"]]
    missing = [n for n in needed if n not in feed_names and not n.endswith((_graph.LENGTHS_SUFFIX, _graph.STEPS_SUFFIX))]
    if missing:
        raise native.InvalidArgumentError(
            f"save_inference_model: the targets need the inputs {', '.join(missing)}, which are not in the feeds")
    _make_folder(model_path)
    rows = _rows_as_variables(pruned)
    try:
        _write_bytes(model_path, pruned.ir.to_proto())
        if params_path is None:
            return
        metadata = {"feed": json.dumps(list(feed_names)), "fetch": json.dumps([v.name for v in fetch_vars]),
                    "lengths": json.dumps(lengths)}
        try:
            save_arrays(params_path, _values(pruned.ir.persistables(), global_scope(), "save_inference_model"), metadata)
        except Exception:
            _remove_file(model_path)  # it cannot be used without
            raise
    finally:
        for name in rows:
            global_scope().native.erase(name)


def _rows_as_variables(program):
    """Lookups of tables that this process keeps become lookups of variables, whose names are returned."""
    if not own_tables():
        return []
    with tempfile.TemporaryDirectory() as folder:
        native.fleet.save_servers(global_scope().native, folder)
        return native.fleet.serve_alone(program.ir, global_scope().native, folder)


def read_inference_model(model_path, params_path):
    with open(model_path, "rb") as file:
        program = Program(native.Program.parse_proto(file.read(), model_path))
    arrays, metadata = native.load_tensors(params_path)
    for name, value in arrays.items():
        global_scope().native.set_as(program.ir, name, value)
    if "feed" not in metadata or "fetch" not in metadata:
        raise native.CorruptFileError(f"{params_path} does not say what is fed and fetched; it is not an inference model")
    program.feed_names, program.fetch_names = json.loads(metadata["feed"]), json.loads(metadata["fetch"])
    for name, (lengths, loose) in json.loads(metadata.get("lengths", "{}")).items():
        program._variable(name).lengths = program._variable(lengths)
        program._variable(lengths).loose_rows = loose
        program.has_sequences = program.has_sequences or loose
    return [program, program.feed_names, [program._variable(n) for n in program.fetch_names]]


def save_inference_model(path_prefix, feed_vars, fetch_vars, executor, program=None, clip_extra=False):
    """Writes <path_prefix>.pdmodel and .pdiparams: the part of the program that computes fetch_vars, for testing."""
    for name, variables in (("feed_vars", feed_vars), ("fetch_vars", fetch_vars)):
        if not all(isinstance(v, _graph.Variable) for v in as_list(variables)):
            raise native.InvalidArgumentError(f"save_inference_model: {name} must be variables, got {variables!r}")
    targets = as_list(fetch_vars)
    if not targets:
        raise native.InvalidArgumentError("save_inference_model: fetch_vars must name at least one variable")
    write_inference_model(path_prefix + ".pdmodel", path_prefix + ".pdiparams", [v.name for v in as_list(feed_vars)],
                          targets, targets[0].program if program is None else program)


def load_inference_model(path_prefix, executor, model_filename=None, params_filename=None):
    """Returns [program, names of the feeds, variables to fetch]. Names of files are those in the folder path_prefix."""
    if (model_filename is None) != (params_filename is None):
        raise native.InvalidArgumentError("load_inference_model: give both model_filename and params_filename, or none")
    if model_filename is not None:
        return read_inference_model(os.path.join(path_prefix, model_filename),
                                    os.path.join(path_prefix, params_filename))
    return read_inference_model(path_prefix + ".pdmodel", path_prefix + ".pdiparams")


# ---- bytes ----
def serialize_persistables(feed_vars, fetch_vars, executor, program=None):
    import tempfile
    pruned = normalize_program(program, feed_vars, fetch_vars)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tensors")
        save_arrays(path, _values(pruned.ir.persistables(), global_scope(), "serialize_persistables"))
        with open(path, "rb") as file:
            return file.read()


def deserialize_persistables(program, data, executor):
    import tempfile
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        arrays = native.load_tensors(file.name)[0]
    set_program_state(program, arrays)


def deserialize_program(data):
    return Program.parse_from_string(data)


def save_to_file(path, content):
    _make_folder(path)
    _write_bytes(path, content)


def load_from_file(path):
    with open(path, "rb") as file:
        return file.read()
